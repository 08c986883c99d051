"""The steps of the demonstration."""

from __future__ import annotations

from urllib.parse import urlencode

from rich.console import Console
from rich.markup import escape

from fusion.doc_ids import doc_id
from orchestrator.cli.demo.pydocs import python_documents
from orchestrator.cli.progress import progress_bar
from orchestrator.cli.results import print_response
from orchestrator.indexing.ndjson import ValidLine
from orchestrator.schema.search import SearchRequest
from orchestrator.service.service import Service

QUERIES = (
    "run a subprocess and capture its output",
    "what does asyncio.to_thread do",
    "parse an ISO 8601 date",
)


async def index_documentation(service: Service, console: Console) -> None:
    """Index the documentation, unless it is indexed already.

    :raises BadRequest: if nothing encodes texts.
    """
    service.documents.require_encoder("the documents of the demo")
    documents = python_documents()
    links = sum(len(document.links) for document in documents)
    console.print(f"{len(documents):,} documents and {links:,} links from the documentation of this Python")
    by_identity = {doc_id(document.id, document.collection): document for document in documents}
    if await service.documents.get_many(by_identity, service.anonymous) == by_identity:
        console.print("they are indexed already")
        return
    lines = (ValidLine(number, document) for number, document in enumerate(documents, start=1))
    with progress_bar(console, "encoding", "documents", len(documents)) as advance:
        await service.documents.index(lines, service.anonymous, lambda _: None, advance)


async def answer_questions(service: Service, console: Console) -> None:
    """Search for three questions, and print the rank of each hit in each source."""
    sources = [source.name for source in service.search.sources]
    console.print(f"{len(QUERIES)} questions, and the rank of each hit in {', '.join(sources)}:")
    for number, query in enumerate(QUERIES, start=1):
        request = SearchRequest(query=query, limit=5, timeout_ms=10_000)
        console.print(f"\nquestion {number} of {len(QUERIES)}: [bold]{escape(query)}[/bold]", highlight=False)
        print_response(console, "", await service.search.search(request, service.anonymous, "demo"))


def example_request(port: int) -> str:
    """A shell command that sends a request to the API."""
    return (
        f"curl -s http://127.0.0.1:{port}/v1/search -H 'content-type: application/json' "
        """-d '{"query": "walk a directory tree", "limit": 3}'"""
    )


def console_address(port: int) -> str:
    """The address of the console, with the three questions to choose from."""
    return f"http://127.0.0.1:{port}/#{urlencode([('example', query) for query in QUERIES])}"
