"""Which adapter stands behind which setting, and how they are put together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio.to_thread

from adapters import AdapterError, DocumentReader, Priors, RecordReader, Retriever, Unavailable, VersionMismatch, Writer
from adapters.embed.minilm import MiniLM
from adapters.embed.table_file import TableFile
from adapters.embedded import Library
from adapters.embedded.store import LibraryStore
from adapters.fingerprint import generation_name
from adapters.graph.centrality import CentralityFile
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.extract import extractor
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from adapters.keyword.expand import expander
from adapters.port import CentralityJob, Server, Store
from adapters.rerank import NONE, reranker
from adapters.server import GRAPH, KEYWORD, VECTOR, Address, Limits
from adapters.vector.embedded import EmbeddedVector, VectorPart
from orchestrator.admission import Admission
from orchestrator.again import Again, Budget, Spared
from orchestrator.answers import Answers
from orchestrator.breakers import Breakers
from orchestrator.encode import Encoding
from orchestrator.engine import Engine, Index
from orchestrator.guard import TRUST, Guard
from orchestrator.indexing.announce import Announcing
from orchestrator.indexing.journal import Journal
from orchestrator.indexing.replicate import Replicator
from orchestrator.indexing.writer import IndexWriter
from orchestrator.keys import Keys
from orchestrator.rerank import Reranking
from orchestrator.roads import Roads
from orchestrator.settings import EMBEDDED, Settings
from orchestrator.versions import Stamped
from orchestrator.wiring.caching import Caching
from orchestrator.wiring.service import Local, Service
from orchestrator.wiring.verified import Verified

_log = logging.getLogger(__name__)

_COMPUTING_AT_ONCE, _WAITING_AT_ONCE = 2, 64
"""Searches in one process where they only compute, one step of one of them at a time; where they wait for others."""
_WRITES_AT_ONCE, _WRITES_WAITING = 8, 64
"""Bodies of writes in memory, and who waits to send one: one is written while others come, some of them slowly."""
_SERVER_RECIPE = 5
"""Changes whenever the adapters of servers would write something else for the same document."""


@dataclass(slots=True)
class _Backends:
    """What the settings name, by source."""

    sources: dict[str, Retriever] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    stores: dict[str, Store] = field(default_factory=dict)
    priors: Priors = field(init=False)
    """The graph source's, wherever that is."""
    documents: DocumentReader = field(init=False)
    """The library, if there is one: it is nearest. Else the keyword source, which keeps them too."""
    reader: str = ""
    """The store that documents are read from."""
    spare: tuple[RecordReader, str] | None = None
    """Who could give them instead, and the store that it reads from."""
    centrality: CentralityJob | None = None
    local: Local | None = None
    verified: dict[str, Verified] = field(default_factory=dict)
    """The sources that have a server, as they are searched."""

    def mismatched(self) -> Mapping[str, str]:
        """By source, how its store was built where that is not what the settings say, as far as it is known now."""
        told = {source: each.mismatch for source, each in self.verified.items() if each.mismatch}
        if self.local and self.local.library.mismatch:
            told["index"] = self.local.library.mismatch
        return told


@asynccontextmanager
async def opened(settings: Settings, prepare: bool = True) -> AsyncIterator[Service]:
    """Open the stores and the model that the settings name; closed at the end. One event loop from here to there.

    Indexes that servers do not have yet are made. A server that is away is no reason not to start: its source is
    missing from answers until it is back.

    :param prepare: whether servers are asked for anything at all yet.
    :raises KeysError: if the file of keys cannot be read.
    :raises AdapterError: if the embedded engine cannot be opened, or ``strict_index`` refuses what a store holds.
    """
    model = await anyio.to_thread.run_sync(MiniLM, settings.model_dir)
    async with AsyncExitStack() as stack:
        identity = "+".join((model.identity, *_recipes(settings)))
        backends = _servers(settings, model.dimension, identity)
        for server in backends.servers.values():
            stack.push_async_callback(server.close)
        for source, server in backends.servers.items():
            backends.verified[source] = Verified(server, settings.strict_index)
            backends.sources[source] = Again(
                backends.verified[source], Budget(settings.retry_share), settings.hedge_ms / 1_000
            )
            if prepare:
                await _prepare(source, server, backends.verified[source], settings.strict_index)
        await anyio.to_thread.run_sync(_add_embedded, backends, settings, model.identity)
        yield _service(settings, model, identity, backends, stack)


def _reranking(settings: Settings, stack: AsyncExitStack) -> Reranking:
    timeout_s = settings.rerank_timeout_ms / 1_000
    made, close = reranker(
        settings.reranker, settings.reranker_model, settings.reranker_api_key.get_secret_value(), timeout_s
    )
    if close:
        stack.push_async_callback(close)
    return Reranking(
        made,
        settings.rerank_top,
        settings.rerank_chars,
        settings.rerank_budget_chars,
        timeout_s,
        settings.rerank_clearance,
    )


async def _prepare(source: str, server: Server, verified: Verified, strict: bool) -> None:
    try:
        await verified.look()
        if not verified.mismatch or strict:  # then it says what is wrong
            await server.prepare()
    except VersionMismatch:
        raise
    except AdapterError as error:
        _log.warning("the %s source is not there: %s", source, error)


def _service(settings: Settings, model: MiniLM, identity: str, backends: _Backends, stack: AsyncExitStack) -> Service:
    table = TableFile(settings.data_dir / "query-table.bin", model.tokenizer, model.identity)
    guard = Guard(settings.data_dir / TRUST)
    encoding = Encoding(model, table, settings.query_encoder, settings.query_encoder_busy, settings.query_memo)
    replicator: Replicator | None = None
    writer: Writer
    index: Index
    if backends.local and not backends.servers:
        writer = index = backends.local.library
    else:
        journal = Journal(settings.data_dir / "journal", settings.journal_max_bytes)
        writer = index = replicator = Replicator(journal, backends.stores, identity, settings.write_timeout_ms / 1_000)
    breakers = Breakers(
        settings.breaker_failures, settings.breaker_pause_ms / 1_000, settings.source_timeout_ms / 1_000
    )
    seen: list[Stamped] = [*([backends.local.library] if backends.local else []), *([replicator] if replicator else [])]
    caching = Caching(settings, seen, backends.local is None, stack)
    waiting: Callable[[], bool] = replicator.holds_anything if replicator else lambda: False
    priors = caching.remembered_priors(backends.priors)
    searches = Admission(_at_once(settings, backends), settings.max_waiting)
    engine = Engine(
        settings=settings,
        roads=Roads(caching.remembered(backends.sources), priors, encoding, expander(settings.expander), breakers),
        documents=_readers(backends, replicator),
        priors=priors,
        index=index,
        reranking=_reranking(settings, stack),
        mismatches=backends.mismatched,
        guard=guard.value,
        waiting=lambda: searches.waiting,
    )
    return Service(
        settings=settings,
        keys=Keys(settings.keys_file) if settings.keys_file else None,
        searches=searches,
        reads=Admission(_WAITING_AT_ONCE, settings.max_waiting),
        writes=Admission(_WRITES_AT_ONCE, _WRITES_WAITING),
        engine=engine,
        answers=Answers(engine, caching.answers, caching.versions, settings, searches),
        versions=caching.versions,
        generations=caching.generations,
        cache_report=caching.report,
        writer=IndexWriter(Announcing(writer, caching.versions, waiting), model, extractor(settings.extractor)),
        documents=backends.documents,
        reader=backends.reader,
        index=index,
        model=model,
        table=table,
        guard=guard,
        sources=backends.sources,
        local=backends.local,
        servers=backends.servers,
        centrality=backends.centrality,
        replicator=replicator,
    )


def _readers(backends: _Backends, replicator: Replicator | None) -> DocumentReader:
    """Who gives the documents of an answer: not the store that writes ask, which must know the last one of each."""
    if backends.local or not backends.spare or not replicator:
        return backends.documents
    spare, store = backends.spare
    return Spared(backends.documents, spare, lambda: replicator.whole(store))


def _at_once(settings: Settings, backends: _Backends) -> int:
    """Searches that one process works on at once: as many as it can hurry, or wait for."""
    waits = backends.servers or settings.reranker != NONE or settings.expander.startswith("python://")
    return settings.max_in_flight or (_WAITING_AT_ONCE if waits else _COMPUTING_AT_ONCE)


def _recipes(settings: Settings) -> Iterator[str]:
    """How each source is built, in a word."""
    for url, version in (
        (settings.vector, VectorPart.version),
        (settings.keyword, KeywordPart.version),
        (settings.graph, GraphPart.version),
    ):
        scheme = url.partition("://")[0].partition("+")[0]
        yield version if url == EMBEDDED else f"{scheme}-{_SERVER_RECIPE}"


def _servers(settings: Settings, dimension: int, identity: str) -> _Backends:
    """The sources that have a server. Connections are made when they are first needed."""
    limits = Limits(settings.source_timeout_ms / 1_000, settings.write_timeout_ms / 1_000, settings.backend_connections)
    made = _Backends()
    name = settings.index_name
    built = generation_name(name, identity)
    if settings.vector != EMBEDDED:
        with _extra("qdrant"):
            from adapters.vector import qdrant  # noqa: PLC0415
        at = Address.parse(settings.vector, VECTOR)
        key = settings.qdrant_api_key.get_secret_value() or None
        vector = qdrant.QdrantVector(qdrant.connect(at, key, limits), name, dimension, identity, limits)
        made.sources["vector"] = made.servers["vector"] = made.stores[f"vector {at} {built}"] = vector
        made.spare = vector, f"vector {at} {built}"
    if settings.keyword != EMBEDDED:
        with _extra("opensearch"):
            from adapters.keyword import opensearch  # noqa: PLC0415
        at = Address.parse(settings.keyword, KEYWORD)
        client = opensearch.connect(at, limits, settings.ca_file)
        keyword = opensearch.OpenSearchKeyword(client, name, identity, limits)
        made.sources["keyword"] = made.servers["keyword"] = made.stores[f"keyword {at} {built}"] = keyword
        made.documents, made.reader = keyword, f"keyword {at} {built}"
    if settings.graph != EMBEDDED:
        with _extra("memgraph"):
            from adapters.graph import bolt, memgraph  # noqa: PLC0415
        at = Address.parse(settings.graph, GRAPH)
        graph = memgraph.MemgraphGraph(bolt.Bolt(at, limits), name, identity)
        made.sources["graph"] = made.servers["graph"] = made.stores[f"graph {at} {built}"] = graph
        made.priors = made.centrality = graph
    return made


def _add_embedded(made: _Backends, settings: Settings, encoder: str) -> None:
    """The sources that have no server, in one library that holds the documents too."""
    vector = VectorPart() if settings.vector == EMBEDDED else None
    keyword = KeywordPart() if settings.keyword == EMBEDDED else None
    graph = GraphPart() if settings.graph == EMBEDDED else None
    parts = [part for part in (vector, keyword, graph) if part]
    if not parts:
        return
    folder = settings.data_dir / "index"
    library = Library(folder, parts, "+".join((encoder, *(part.version for part in parts))), settings.strict_index)
    central = CentralityFile(folder / "centrality.msgpack", settings.centrality)
    if vector:
        made.sources["vector"] = EmbeddedVector(library, vector)
    if keyword:
        made.sources["keyword"] = EmbeddedKeyword(library, keyword)
    if graph:
        made.sources["graph"] = made.priors = EmbeddedGraph(library, graph, central)
    made.stores["embedded"] = LibraryStore(library)
    made.documents, made.reader = library, "embedded"
    made.local = Local(library, central, graph)


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """Say which part of the distribution is missing."""
    try:
        yield
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'trivium[{name}]'") from error
