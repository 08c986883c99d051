"""One request on a virtual clock, to a service whose parts stall."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from adapters import Record, Scope
from adapters.engine import EmbeddedIndex
from adapters.model.facets import Facet
from adapters.model.filter import Filter
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.ports import Listing, RerankResult, Snapshot, SortKey, SourceQuery
from adapters.ports.documents import ChunkPosition, DocumentPage
from fusion.columns import Documents, Ranking
from orchestrator.schema.search import SearchResponse
from tests import virtual_clock
from tests.orchestrator.services import SETTINGS, FixedSource, search, search_service


async def forever() -> None:
    await asyncio.Event().wait()


class TimedRequest:
    """One request of 1 s to a service whose parts stall, and the virtual time at which each part was called.

    :param stalled: the parts that never answer.
    """

    def __init__(self, index: EmbeddedIndex, *stalled: str) -> None:
        self._index = index
        self._stalled = stalled
        self.called_at_s: dict[str, float] = {}
        self.ended_at_s = 0.0

    async def call(self, part: str) -> None:
        self.called_at_s.setdefault(part, asyncio.get_running_loop().time())
        if part in self._stalled:
            await forever()

    def source(self, name: str) -> TimedSource:
        return TimedSource(name, self.call)

    def run(
        self, query: str = "alpha", settings: Mapping[str, object] | None = None, **fields: object
    ) -> SearchResponse:
        """The response.

        :raises AllSourcesFailed: as the service does.
        """

        async def play() -> SearchResponse:
            loop = asyncio.get_running_loop()
            stage = TimedStages(self._index, self.call)
            service = search_service(
                self._index,
                settings=SETTINGS.changed(**{"source_timeout_ms": 60_000, **(settings or {})}),
                documents=stage,  # type: ignore[arg-type]
                entities=stage,
                centralities=stage,
                expander=stage if "expansion" in self._stalled else None,
                reranker=stage,
                rerank_timeout_s=60.0,
                vector=self.source("vector"),
                graph=self.source("graph"),
                keyword=self.source("keyword"),
            )
            service.clock = loop.time
            try:
                return await search(service, query, **{"timeout_ms": 1_000, **fields})  # type: ignore[arg-type]
            finally:
                self.ended_at_s = loop.time()

        return virtual_clock.run(play())


class TimedSource:
    """A source that finds the same two documents."""

    def __init__(self, name: str, call: Callable[[str], Awaitable[None]]) -> None:
        self._name, self._call = name, call
        self._source = FixedSource(name, "a", "b")

    async def search(self, query: SourceQuery) -> Ranking:
        await self._call(self._name)
        return await self._source.search(query)


class TimedStages:
    """All other parts of a search: documents, entities, centralities, synonyms, reranker."""

    def __init__(self, index: EmbeddedIndex, call: Callable[[str], Awaitable[None]]) -> None:
        self._index, self._call = index, call
        self._has_counted = False

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        await self._call("documents")
        return await self._index.fetch(scope, documents)

    async def find(self, condition: Filter, limit: int) -> list[Record]:
        await self._call("neighbors")
        return await self._index.find(condition, limit)

    async def chunk_ids(self, positions: Sequence[ChunkPosition], condition: Filter) -> Mapping[ChunkPosition, str]:
        await self._call("neighbors")
        return await self._index.chunk_ids(positions, condition)

    async def page(self, condition: Filter, limit: int, start: str | None = None) -> DocumentPage:
        return await self._index.page(condition, limit, start)

    async def counts(self, field: str, condition: Filter) -> Mapping[str, int]:
        first, self._has_counted = not self._has_counted, True
        await self._call("collections" if first else "explain")
        return await self._index.counts(field, condition)

    async def ordered(self, condition: Filter, sort: SortKey | None, count: int) -> Listing:
        await self._call("listing")
        return await self._index.current().ordered(condition, sort, count)

    async def facets(
        self, scope: Scope, sizes: Mapping[str, int], condition: Filter, within: Documents | None = None
    ) -> Mapping[str, Facet]:
        await self._call("facets")
        return await self._index.current().facets(scope, sizes, condition, within)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        await self._call("entity lookup")
        return True

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        await self._call("boosts")
        return {"a": 0.5}

    async def expand(self, text: str) -> tuple[str, ...]:
        await self._call("expansion")
        return ()

    async def rerank(self, query: str, passages: Sequence[str]) -> RerankResult:
        await self._call("rerank")
        return RerankResult(tuple(range(len(passages))))
