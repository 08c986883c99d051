"""Shortcuts for tests of an opened service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec
import pytest

from adapters import Document, Link, Scope
from orchestrator.auth.principal import Principal
from orchestrator.indexing.ndjson import ValidLine
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.service import Service

ALPHA = Document(id="a", title="Alpha Centauri", text="Alpha Centauri is a star", links=(Link("b", "near"),))
BETA = Document(id="b", text="Beta Centauri is another star")

TIMEOUT_MS = 20_000
"""A long time limit: a loaded machine must not degrade a response."""


def request_of(query: str, **fields: object) -> SearchRequest:
    """A request with a long time limit."""
    return SearchRequest(query=query, **{"timeout_ms": TIMEOUT_MS, **fields})  # type: ignore[arg-type]


async def index(service: Service, documents: Iterable[Document], scope: Scope | None = None) -> IndexReport:
    """Index documents that are all valid, with the highest clearance; by default in the scope of the settings."""
    principal = Principal("test", scope or service.anonymous.scope, "restricted", "admin")
    lines = [ValidLine(number, document) for number, document in enumerate(documents, start=1)]
    return await service.documents.index(lines, principal, lambda line: pytest.fail(line.error))


async def search(service: Service, query: str, **fields: object) -> SearchResponse:
    """The response, without the response cache."""
    return await service.search.search(request_of(query, **fields), service.anonymous, "test")


async def respond(service: Service, query: str, **fields: object) -> SearchResponse:
    """The response as the API sends it: from the cache, or computed."""
    encoded = await service.search.respond(request_of(query, **fields), service.anonymous, "test")
    return msgspec.json.decode(encoded.content, type=SearchResponse)


@asynccontextmanager
async def background(service: Service) -> AsyncIterator[None]:
    """Inside, the background tasks run as they do while the service serves."""
    tasks = [asyncio.create_task(task()) for task in service.background]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended


async def eventually(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait until a condition holds that nothing reports.

    :raises TimeoutError: if it does not hold in time.
    """
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
