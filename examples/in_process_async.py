"""The same in asynchronous code: the service runs on the event loop of the caller."""

import asyncio

import trivium


async def main() -> None:
    async with trivium.open_service(trivium.load(data_dir="example-data")) as service:
        documents = [trivium.Document(id="1", title="The Prestige", text="A film by Christopher Nolan.")]
        errors: list[object] = []
        await service.documents.index(trivium.parse_objects(documents), service.anonymous, errors.append)
        if errors:
            raise SystemExit(f"not all documents were stored: {errors}")
        request = trivium.SearchRequest(query="who directed The Prestige?", limit=1)
        response = await service.search.search(request, service.anonymous, "example")
        print(response.hits[0].id, response.route.reason)


asyncio.run(main())
