"""Index and search by the client. Start the service first: TRIVIUM_DATA_DIR=example-data trivium serve --port 8080"""

import sys

from orchestrator.client import Client, Document

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"

with Client(ADDRESS, timeout_s=10) as client:
    films = [Document(id="1", title="The Prestige", text="A film by Christopher Nolan.")]
    outcome = client.index(films)
    print(outcome.indexed, "indexed")
    response = client.search("who directed The Prestige?", limit=1, min_generation=outcome.generation)
    print(response.hits[0].id, response.route.reason)
