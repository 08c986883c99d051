"""Index and search over HTTP. Start the service first: TRIVIUM_DATA_DIR=example-data trivium serve --port 8080"""

import json
import sys
from urllib.request import Request, urlopen

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"


def post(path: str, body: str) -> dict:
    request = Request(ADDRESS + path, body.encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as response:
        return json.load(response)


print(post("/v1/documents", json.dumps({"id": "1", "title": "The Prestige", "text": "A film by Christopher Nolan."})))
found = post("/v1/search", json.dumps({"query": "who directed The Prestige?", "limit": 1}))
print(found["hits"][0]["id"], found["route"]["reason"])
