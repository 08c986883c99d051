"""The same in asynchronous code: the service runs on the event loop of the caller."""

import asyncio

import trivium
from orchestrator.indexing.ndjson import ValidLine


async def main() -> None:
    async with trivium.open_service(trivium.load(data_dir="example-data")) as service:
        document = trivium.Document(id="1", title="The Prestige", text="A film by Christopher Nolan.")
        await service.documents.index([ValidLine(1, document)], service.anonymous, print)
        request = trivium.SearchRequest(query="who directed The Prestige?", limit=1)
        response = await service.search.search(request, service.anonymous, "example")
        print(response.hits[0].id, response.route.reason)


asyncio.run(main())
