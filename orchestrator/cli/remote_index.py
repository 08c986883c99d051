"""The index of a running service, for evaluations."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import anyio.to_thread
import msgspec

from adapters import Document
from adapters.model.batching import sized_batches
from orchestrator.client import Client, Refused
from orchestrator.client.calls import Call
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
from orchestrator.schema.operations import Readiness
from orchestrator.schema.search import SearchResponse

_ATTEMPTS = 3
"""Searches of a query, if a source fails: others may use the service, too."""
_MAX_BATCH_BYTES = 1_024
"""Size of the ids in the address of a request for documents."""


class _Info(msgspec.Struct):
    version: str


class _Reference(msgspec.Struct):
    info: _Info
    components: Any


class RemoteIndex:
    """The index of a running service, as the caller with its key sees it. See ``SearchedIndex``.

    :raises AdapterError: if the service cannot be reached. Blocks.
    """

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url
        self._sources = tuple(client.send(Call("GET", "/readyz", Readiness)).sources)
        reference = client.send(Call("GET", "/openapi.json", _Reference))
        self._version = reference.info.version
        limit, _ = reference.components["schemas"]["SearchRequest"]["properties"]["limit"]["anyOf"]
        self._limit = min(DEPTH, limit["maximum"])

    def conditions(self) -> Conditions:
        """What the figures hold for. Blocks."""
        documents = sum(each.documents for each in self._client.collections())
        return Conditions(self._url, documents, None, None, self._version, today())

    async def search(self, run: str, query_id: str, text: str) -> QueryResult:
        """See ``SearchedIndex``."""
        fields = {
            **run_fields(run, self._sources),
            "query": text,
            "limit": self._limit,
            "highlight": False,
            "text_chars": 1,
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
        found: list[Document] = []
        for batch in sized_batches(sorted(ids), lambda id_: len(id_.encode()), _MAX_BATCH_BYTES):
            documents = self._client.documents(filter=msgspec.to_builtins(named(batch)))
            found += await anyio.to_thread.run_sync(list, documents)
        return titles_by_id(((each.id, each.parent_id, each.title) for each in found), ids)

    async def _page(self, name: str, fields: dict[str, object]) -> SearchResponse:
        attempt = 1
        while True:
            try:
                response = await anyio.to_thread.run_sync(partial(self._client.search, **fields))  # type: ignore[arg-type]
            except Refused as error:
                raise IncompleteRun(f"{name}: {error}") from error
            if not response.degraded or attempt == _ATTEMPTS:
                return require_complete(response, name)
            attempt += 1
