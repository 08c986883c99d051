"""Measure judged queries at a running service, in one batch. Start it first:
TRIVIUM_DATA_DIR=example-data trivium serve --port 8080

`trivium evaluate --url` has more measures, and compares every source.
"""

import sys

from orchestrator.client import Client

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
FILMS = [
    {"id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan about two magicians."},
    {"id": "heat", "title": "Heat", "text": "A film by Michael Mann about a thief and a detective."},
]
JUDGMENTS = {"film about magicians": "prestige", "Michael Mann": "heat", "who hunts a thief?": "heat"}

with Client(ADDRESS) as client:
    client.index(FILMS)
    requests = [{"query": query, "limit": 5, "fields": ["id"]} for query in JUDGMENTS]
    ranks = []
    for outcome, relevant in zip(client.search_batch(requests), JUDGMENTS.values(), strict=True):
        found = [hit.id for hit in outcome.result().hits]
        ranks.append(1 / (found.index(relevant) + 1) if relevant in found else 0.0)
    print(f"MRR@5 {sum(ranks) / len(ranks):.2f} of {len(ranks)} queries")
