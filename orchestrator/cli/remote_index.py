"""The index of a running service, for evaluations."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import anyio.to_thread
import msgspec

from adapters.model.batching import sized_batches
from orchestrator.cli.remote import RemoteService
from orchestrator.evaluation.conditions import Conditions, today
from orchestrator.evaluation.runs import DEPTH, run_fields
from orchestrator.evaluation.searched_index import (
    IncompleteRun,
    QueryResult,
    RankedHit,
    named,
    ranked,
    require_complete,
    titles_by_id,
)
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import CollectionsResponse
from orchestrator.schema.operations import Readiness
from orchestrator.schema.search import SearchResponse

_TIMEOUT_MS = 30_000
_ATTEMPTS = 3
"""Searches of a query, if a source fails: others may use the service, too."""
_MAX_BATCH_BYTES = 1_024
"""Size of the ids in the address of a request for documents."""
_DOCUMENTS_PER_PAGE = "1000"


class _Document(msgspec.Struct):
    id: str
    title: str = ""
    parent_id: str | None = None


class _Documents(msgspec.Struct):
    documents: list[_Document]
    next_cursor: str | None = None


class _Info(msgspec.Struct):
    version: str


class _Reference(msgspec.Struct):
    info: _Info
    components: Any


class RemoteIndex:
    """The index of a running service, as the caller with its key sees it. See ``SearchedIndex``.

    :raises AdapterError: if the service cannot be reached. Blocks.
    """

    def __init__(self, service: RemoteService) -> None:
        self._service = service
        self._sources = tuple(service.get("/readyz", Readiness).sources)
        reference = service.get("/openapi.json", _Reference)
        self._version = reference.info.version
        limit, _ = reference.components["schemas"]["SearchRequest"]["properties"]["limit"]["anyOf"]
        self._limit = min(DEPTH, limit["maximum"])

    def conditions(self) -> Conditions:
        """What the figures hold for. Blocks."""
        collections = self._service.get("/v1/collections", CollectionsResponse).collections
        documents = sum(each.documents for each in collections)
        return Conditions(self._service.url, documents, None, None, self._version, today())

    async def search(self, run: str, query_id: str, text: str) -> QueryResult:
        """See ``SearchedIndex``."""
        fields = {
            **run_fields(run, self._sources),
            "query": text,
            "limit": self._limit,
            "highlight": False,
            "text_chars": 1,
            "timeout_ms": _TIMEOUT_MS,
        }
        hits: list[RankedHit] = []
        name = f"{run}, query {query_id!r}"
        page = await self._page(name, fields)
        hits += ranked(page.hits)
        while page.next_cursor and len(hits) < DEPTH:
            page = await self._page(name, {**fields, "cursor": page.next_cursor})
            hits += ranked(page.hits)
        return QueryResult(run, query_id, hits[:DEPTH], page.route.sources)

    async def titles(self, ids: Collection[str]) -> dict[str, str]:
        """See ``SearchedIndex``."""
        found: list[_Document] = []
        for batch in sized_batches(sorted(ids), lambda id_: len(id_.encode()), _MAX_BATCH_BYTES):
            condition = msgspec.json.encode(named(batch)).decode()
            parameters = {"filter": condition, "limit": _DOCUMENTS_PER_PAGE}
            cursor: str | None = ""
            while cursor is not None:
                more = {"cursor": cursor} if cursor else {}
                get = partial(self._service.get, "/v1/documents", _Documents, **parameters, **more)
                page = await anyio.to_thread.run_sync(get)
                found += page.documents
                cursor = page.next_cursor
        return titles_by_id(((each.id, each.parent_id, each.title) for each in found), ids)

    async def _page(self, name: str, fields: dict[str, object]) -> SearchResponse:
        attempt = 1
        while True:
            try:
                _, response = await anyio.to_thread.run_sync(self._service.search, fields, _TIMEOUT_MS)
            except BadRequest as error:
                raise IncompleteRun(f"{name}: {error}") from error
            if not response.degraded or attempt == _ATTEMPTS:
                return require_complete(response, name)
            attempt += 1
