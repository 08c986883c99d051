"""``trivium demo``: index this Python's documentation, then answer three questions about it."""

from __future__ import annotations

from rich.console import Console

from orchestrator.contract import SearchRequest
from orchestrator.demo.pydocs import documents
from orchestrator.progress import bar
from orchestrator.show import show
from orchestrator.wiring import Service

QUERIES = (
    "run a subprocess and capture its output",
    "what does asyncio.to_thread do",
    "parse an ISO 8601 date",
)


async def prepare(service: Service, console: Console) -> None:
    """Index the documentation, unless it is there already."""
    made = documents()
    edges = sum(len(document.links) for document in made)
    console.print(f"{len(made):,} documents and {edges:,} links from the documentation of this Python")
    held = await service.documents.fetch(service.caller.scope, [document.id for document in made])
    if all(document.id in held and held[document.id].document == document for document in made):
        console.print("they are indexed already")
        return
    with bar(console, "encoding", "documents", len(made)) as advance:
        await service.writer.index(made, service.caller.scope, advance)


async def answer(service: Service, console: Console) -> None:
    """Three questions, and which source found what."""
    for query in QUERIES:
        request = SearchRequest(query=query, limit=5, timeout_ms=10_000)
        show(console, query, await service.engine.search(request, service.caller, "demo"))


def example(port: int) -> str:
    """A request to the API, for a shell."""
    return (
        f"curl -s http://127.0.0.1:{port}/v1/search -H 'content-type: application/json' "
        """-d '{"query": "walk a directory tree", "limit": 3}'"""
    )
