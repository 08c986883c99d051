"""An engine over a real embedded library, and sources that misbehave in one way each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio

from adapters import DocumentReader, Expander, Priors, Query, Record, Reranker, Retriever, Scope, Unavailable
from adapters.embedded import Library
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from adapters.vector.embedded import EmbeddedVector, VectorPart
from fusion import Ranking
from orchestrator.breakers import Breakers
from orchestrator.caller import Caller
from orchestrator.contract import SearchRequest, SearchResponse
from orchestrator.encode import Encoding
from orchestrator.engine import Engine
from orchestrator.rerank import Reranking
from orchestrator.roads import Roads
from orchestrator.settings import Settings
from tests.conftest import SCOPE, unit

CALLER = Caller(SCOPE, "normal")
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()


class FixedVector:
    """Encodes everything alike: these tests are about what is done with answers, not about meaning."""

    dimension = 16

    async def encode(self, text: str) -> object:
        return unit(1)


class NoTable:
    def encode(self, text: str) -> None:
        return None


class Broken:
    """A source that cannot be reached."""

    async def search(self, query: Query) -> Ranking:
        raise Unavailable("connection refused")


class Stalled:
    """A source that never answers."""

    async def search(self, query: Query) -> Ranking:
        await anyio.sleep_forever()
        raise AssertionError


class Forgetful:
    """A source that returns whatever it holds, filter or not."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    async def search(self, query: Query) -> Ranking:
        return Ranking("keyword", self._ids, tuple(1.0 for _ in self._ids))


class Unreadable:
    async def fetch(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Record]:
        raise Unavailable("disk on fire")


class GivenPriors:
    def __init__(self, error: Exception | None = None, **values: float) -> None:
        self._error, self._values = error, values

    async def names(self, query: Query) -> bool:
        if self._error:
            raise self._error
        return "centauri" in query.text.lower()

    async def centralities(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        if self._error:
            raise self._error
        return {id_: value for id_, value in self._values.items() if id_ in ids}


def engine(
    library: Library,
    documents: DocumentReader | None = None,
    priors: Priors | None = None,
    settings: Settings | None = None,
    expander: Expander | None = None,
    reranker: Reranker | None = None,
    breakers: Breakers | None = None,
    **sources: Retriever,
) -> Engine:
    real: dict[str, Retriever] = {
        "vector": EmbeddedVector(library, VectorPart()),
        "graph": EmbeddedGraph(library, GraphPart()),
        "keyword": EmbeddedKeyword(library, KeywordPart()),
    }
    encoding = Encoding(FixedVector(), NoTable(), "adaptive", 3, 10)  # type: ignore[arg-type]
    known = priors or GivenPriors()
    return Engine(
        settings=settings or Settings(source_timeout_ms=5_000),
        roads=Roads(real | sources, known, encoding, expander, breakers or Breakers(1_000_000, 1.0, 5.0)),
        documents=documents or library,
        priors=known,
        index=library,
        reranking=Reranking(reranker, top=3, chars=200, budget_chars=1_000, timeout_s=0.2, clearance="normal"),
        now=lambda: NOW,
    )


async def ask(made: Engine, query: str = "alpha centauri", **asked: object) -> SearchResponse:
    return await made.search(SearchRequest(query=query, **{"timeout_ms": 5_000, **asked}), CALLER, "r1")


def opened(folder: Path) -> Library:
    """An empty library with all three indexes."""
    return Library(folder, (VectorPart(), KeywordPart(), GraphPart()), "test-1")


class Recorder:
    """The graph, watched."""

    def __init__(self, library: Library) -> None:
        self._graph = EmbeddedGraph(library, GraphPart())
        self.asked: list[Query] = []

    async def search(self, query: Query) -> Ranking:
        self.asked.append(query)
        return await self._graph.search(query)
