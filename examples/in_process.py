"""Search in this process, with no server: index two documents and ask for one of them."""

import trivium

with trivium.open("example-data") as index:
    index.add(
        [
            {"id": "1", "title": "The Prestige", "text": "A film by Christopher Nolan.", "tags": ["film"]},
            {"id": "2", "title": "Otters", "text": "Otters swim and eat fish.", "tags": ["animal"]},
        ]
    )
    response = index.search("who directed The Prestige?", filter={"op": "eq", "field": "tags", "value": "film"})
    for hit in response.hits:
        print(hit.id, hit.title, round(hit.score, 2), [name for name, source in hit.sources.items() if source])
