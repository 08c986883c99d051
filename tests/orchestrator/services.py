"""A search service over a real embedded index, and sources that fail in one way each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from adapters import Record, Scope, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.keyword.component import KeywordComponent
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.keyword.snippets import snippet
from adapters.model.filter import Filter
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.model.sources import SOURCES
from adapters.ports import (
    CentralityReader,
    DocumentReader,
    EntityLookup,
    Expander,
    Reranker,
    Retriever,
    Snapshot,
    SourceQuery,
    Vector,
)
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from cache import CachePolicy, MemoryLevel, TieredCache
from fusion.columns import Documents, Ranking
from orchestrator.auth.principal import Principal
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.snapshots import IndexSnapshots
from orchestrator.planning.plan import DAY_S, Plan
from orchestrator.planning.planner import make_plan
from orchestrator.results.explanation import ExplainStage
from orchestrator.results.rerank import RerankStage
from orchestrator.results.tokens import Measure
from orchestrator.retrieval.circuit_breakers import CircuitBreakers
from orchestrator.retrieval.collections import CollectionSplitter
from orchestrator.retrieval.memo import Memo, MemoizedCentralities, MemoizedRetriever
from orchestrator.retrieval.query_encoder import QueryEncoders, StaticEncoder
from orchestrator.retrieval.query_preparation import QueryPreparation
from orchestrator.retrieval.retrieve import Retrieval
from orchestrator.retrieval.source_call import SourceCall
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.admission import Admission
from orchestrator.service.response_cache import ResponseCache
from orchestrator.service.search import SearchService
from orchestrator.settings import Settings
from tests.conftest import SCOPE, unit

PRINCIPAL = Principal("test", SCOPE, "normal")
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
SETTINGS = Settings.of(source_timeout_ms=5_000, rerank_top=3)
CACHE_POLICY = CachePolicy(ttl_s=10.0, stale_while_revalidate_s=5.0, degraded_ttl_s=1.0)
RERANK_TIMEOUT_S = 0.2


class FixedEncoder:
    """Encodes every text alike: these tests are about what is done with rankings, not about meaning."""

    dimension = 16
    encodes_texts = True

    def encode(self, text: str) -> Vector:
        return unit(1)


class NoStaticEncoder:
    """A static encoder that knows no word."""

    def encode(self, text: str) -> Vector | None:
        return None


class FixedStaticEncoder:
    """A static encoder with another vector than :class:`FixedEncoder`."""

    def __init__(self, seed: int) -> None:
        self._vector = unit(seed)

    def encode(self, text: str) -> Vector | None:
        return self._vector


class FailingSource:
    """A source that cannot be reached."""

    async def search(self, query: SourceQuery) -> Ranking:
        raise Unavailable("connection refused")


class StalledSource:
    """A source that never answers."""

    async def search(self, query: SourceQuery) -> Ranking:
        await asyncio.Event().wait()
        raise AssertionError


class FixedSource:
    """A source that returns the same documents for every query, whatever the filter says."""

    def __init__(self, name: str, *ids: str) -> None:
        self._ranking = Ranking.of_ids(name, ids, [1.0] * len(ids))

    async def search(self, query: SourceQuery) -> Ranking:
        return self._ranking


class RecordingSource:
    """A source that records the queries that reach it."""

    def __init__(self, source: Retriever) -> None:
        self._source = source
        self.queries: list[SourceQuery] = []

    async def search(self, query: SourceQuery) -> Ranking:
        self.queries.append(query)
        return await self._source.search(query)


class FailingDocuments:
    """A reader whose documents cannot be read."""

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        raise Unavailable("disk on fire")

    async def counts(self, field: str, condition: Filter) -> Mapping[str, int]:
        return {"documents": 1}


class FixedGraph:
    """What a graph knows besides its rankings: the name Centauri, and the given centralities; or an error."""

    def __init__(self, error: Exception | None = None, **centralities: float) -> None:
        self._error = error
        self._centralities = centralities

    async def mentions_entity(self, query: SourceQuery) -> bool:
        if self._error:
            raise self._error
        return "centauri" in query.text.lower()

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        if self._error:
            raise self._error
        return {id_: value for id_, value in self._centralities.items() if id_ in ids}


def empty_index(folder: Path) -> EmbeddedIndex:
    """An index without documents, with all three components."""
    return EmbeddedIndex(folder, (VectorComponent(), KeywordComponent(), GraphComponent()), "test-1")


def graph_source(index: EmbeddedIndex) -> RecordingSource:
    """The graph of an index, recorded."""
    return RecordingSource(EmbeddedGraph(index, GraphComponent()))


def keyword_source(index: EmbeddedIndex) -> RecordingSource:
    """The keyword source of an index, recorded."""
    return RecordingSource(EmbeddedKeyword(index, KeywordComponent()))


def query_encoders(static: StaticEncoder | None = None) -> QueryEncoders:
    """The encoders of queries, the model being :class:`FixedEncoder`."""
    return QueryEncoders(FixedEncoder(), static or NoStaticEncoder())


def search_service(
    index: EmbeddedIndex,
    *,
    settings: Settings = SETTINGS,
    documents: DocumentReader | None = None,
    entities: EntityLookup | None = None,
    centralities: CentralityReader | None = None,
    static: StaticEncoder | None = None,
    expander: Expander | None = None,
    reranker: Reranker | None = None,
    rerank_timeout_s: float = RERANK_TIMEOUT_S,
    breakers: CircuitBreakers | None = None,
    policy: CachePolicy = CACHE_POLICY,
    clock: Callable[[], float] = lambda: NOW,
    memo_ttl_s: float = 0.0,
    **sources: Retriever,
) -> SearchService:
    """A search service over an index.

    :param memo_ttl_s: of rankings and centralities; 0: nothing is memoized.
    :param sources: by name, those that are not the ones of the index.
    """
    embedded: dict[str, EmbeddedVector | EmbeddedGraph | EmbeddedKeyword] = {
        "vector": EmbeddedVector(index, VectorComponent()),
        "graph": EmbeddedGraph(index, GraphComponent()),
        "keyword": EmbeddedKeyword(index, KeywordComponent()),
    }
    retrievers = embedded | sources
    data_versions = DataVersions([index], "", None)

    def source_call(name: str) -> SourceCall:
        source = next(each for each in SOURCES if each.name == name)
        memo: Memo[Ranking] = Memo(memo_ttl_s, clock)
        lookup = (entities or FixedGraph()) if source.role == "graph" else None
        if name in embedded and name not in sources:
            return SourceCall(source, embedded[name], lookup)
        chained = MemoizedRetriever(retrievers[name], memo, data_versions.current)
        return SourceCall(source, chained, lookup)

    levels = TieredCache(MemoryLevel(1_000_000), None, policy, clock, lambda: 0.0)
    return SearchService(
        embedding_model="test-model",
        snippet=snippet,
        measure=Measure(word_ends),
        settings=settings,
        sources=SOURCES,
        retrieval=Retrieval(
            {source.name: source_call(source.name) for source in SOURCES},
            QueryPreparation(query_encoders(static), expander),
            breakers or CircuitBreakers(1_000_000, 1.0, 5.0),
            CollectionSplitter(Memo(memo_ttl_s, clock)),
        ),
        centralities=MemoizedCentralities(centralities or FixedGraph(), Memo(memo_ttl_s, clock), data_versions.current),
        snapshots=IndexSnapshots(data_versions, index.generation, index.current, documents, has_servers=False),
        rerank=RerankStage(reranker, rerank_timeout_s),
        explain=ExplainStage(
            settings.storage.index_name,
            {"keyword": EmbeddedKeyword(index, KeywordComponent())} if "keyword" not in sources else {},
        ),
        data_versions=data_versions,
        cache=ResponseCache(levels),
        admission=Admission(100, 100),
        build_id=lambda: index.build_id,
        now=clock,
    )


def word_ends(text: str) -> list[int]:
    """A tokenizer: each word is a token."""
    return [word.end() for word in re.finditer(r"\S+", text)]


def request_of(query: str = "alpha centauri", **fields: object) -> SearchRequest:
    """A request with a long time limit."""
    return SearchRequest(query=query, **{"timeout_ms": 5_000, **fields})  # type: ignore[arg-type]


def plan_of(
    query: str = "alpha centauri", principal: Principal = PRINCIPAL, trust: float = 1.0, **fields: object
) -> Plan:
    """The plan of a request on the day of :data:`NOW`."""
    today = int(NOW // DAY_S)
    return make_plan(
        request_of(query, **fields), principal, SETTINGS, SOURCES, trust, today, dimension=FixedEncoder.dimension
    )


async def search(
    service: SearchService, query: str = "alpha centauri", principal: Principal = PRINCIPAL, **fields: object
) -> SearchResponse:
    """The response of a service, without its cache."""
    return await service.search(request_of(query, **fields), principal, "r1")


def unit_tuple(seed: int) -> tuple[float, ...]:
    """A random direction as a request has it."""
    return tuple(float(number) for number in np.asarray(unit(seed)))
