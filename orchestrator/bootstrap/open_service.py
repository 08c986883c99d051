"""Opening a service: every part, connected as the settings say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio.to_thread
from threadpoolctl import threadpool_limits

from adapters import DocumentReader, DocumentWriter, Scope
from adapters.embed.fit import pseudo_queries
from adapters.embed.minilm import MiniLM
from adapters.graph.extract import extractor
from adapters.keyword.expand import expander
from adapters.rerank import NONE
from orchestrator.auth.keyring import Keyring
from orchestrator.auth.principal import anonymous_operator
from orchestrator.bootstrap.background import background_tasks, measure_in_process
from orchestrator.bootstrap.caches import Caches, content_ids
from orchestrator.bootstrap.embedded import FORMATS, EmbeddedEngine, prepared_by
from orchestrator.bootstrap.encoders import StaticEncoderReport, open_static_encoder, query_encoders
from orchestrator.bootstrap.prepare_servers import prepare_servers
from orchestrator.bootstrap.rerankers import open_reranker
from orchestrator.bootstrap.sources import (
    WRITE_TIMEOUT_S,
    NoCentralities,
    SourceBinding,
    add_embedded,
    build_formats,
    in_order,
    search_probes,
    server_backends,
    source_calls,
)
from orchestrator.indexing.data_version import VersionSource
from orchestrator.indexing.invalidation import InvalidatingWriter
from orchestrator.indexing.log.files import FileWriteLog
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.indexing.replication import Replication
from orchestrator.indexing.snapshots import IndexSnapshots
from orchestrator.planning.planner import MAX_QUERY_CHARS
from orchestrator.retrieval.calibration import CALIBRATION_FILE, CalibrationMeasurement, ConfidenceCalibrations
from orchestrator.retrieval.circuit_breakers import MAX_FAILURES, CircuitBreakers
from orchestrator.retrieval.collections import CollectionSplitter
from orchestrator.retrieval.graph_trust import TRUST_FILE, GraphTrust
from orchestrator.retrieval.measure_trust import TrustMeasurement
from orchestrator.retrieval.memo import MemoizedCentralities
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.retrieval.retrieve import Retrieval
from orchestrator.retrieval.source_call import QueryPreparation
from orchestrator.service.admission import Admission
from orchestrator.service.documents import DocumentService
from orchestrator.service.health import HealthService
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.search import SearchService
from orchestrator.service.service import Service
from orchestrator.service.state import StateReader
from orchestrator.service.upkeep import Upkeep
from orchestrator.settings.backends import EMBEDDED
from orchestrator.settings.groups import Settings

_MAX_COMPUTING, _MAX_NETWORK = 1, 64
"""Concurrent searches of a process that only computes, and of one that waits for servers."""
_MAX_WAITING = 256
"""Searches, or reads, of all tenants that may wait for a slot."""
_MAX_WRITES, _MAX_UPLOADS, _MAX_WAITING_WRITES = 8, 4, 64
"""Writes at once, bodies of writes of one tenant in memory, and writes that may wait for a slot."""


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    prepare: bool = True,
    more_sources: Sequence[SourceBinding] = (),
    max_query_chars: int = MAX_QUERY_CHARS,
) -> AsyncIterator[Service]:
    """Open the stores and the model that the settings name; closed at the end. On one event loop.

    Indexes that do not exist on servers yet are created. A server that is away does not stop the start: its source is
    missing from responses until it is back.

    :param prepare: whether servers are contacted before the first request.
    :param more_sources: sources besides those that the settings name.
    :raises KeyFileError: if the file of keys cannot be read.
    :raises AdapterError: if the embedded engine cannot be opened, or ``strict_index`` refuses an index.
    """
    async with AsyncExitStack() as stack:
        # One query, one thread: queries are parallel already, and idle threads of BLAS spin after each call.
        stack.enter_context(threadpool_limits(1, user_api="blas"))
        assembly = _Assembly(settings, max_query_chars, stack)
        await assembly.open(prepare, more_sources)
        yield assembly.service()


class _Assembly:
    """The parts of a service while they are connected."""

    def __init__(self, settings: Settings, max_query_chars: int, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._max_query_chars = max_query_chars
        self._stack = stack

    async def open(self, prepare: bool, more_sources: Sequence[SourceBinding]) -> None:
        """Open everything that takes time."""
        settings = self._settings
        self._model = await anyio.to_thread.run_sync(MiniLM)
        self._static_encoder = open_static_encoder(settings, self._model)
        preparation = prepared_by(settings, self._model)
        self._build_id = "+".join((preparation, *build_formats(settings, FORMATS)))
        self._backends = server_backends(settings, self._model.dimension, self._build_id)
        for server in self._backends.servers.values():
            self._stack.push_async_callback(server.close)
        if EMBEDDED in settings.sources.urls.values():
            engine = await anyio.to_thread.run_sync(
                EmbeddedEngine, settings, preparation, self._model, self._static_encoder
            )
            add_embedded(self._backends, settings, engine)
        for binding in more_sources:
            self._backends.bindings[binding.source.name] = binding
        self._backends.bindings = in_order(self._backends.bindings)
        self._replication = self._open_replication()
        self._caches = self._open_caches()
        self._calls, self._checks = source_calls(
            self._backends, settings, self._caches.memo, self._caches.data_versions
        )
        if prepare:
            await prepare_servers(self._backends.servers, self._checks, settings.storage.strict_index)

    def _open_replication(self) -> Replication | None:
        if self._backends.embedded and not self._backends.servers:
            return None
        folder = self._settings.storage.data_dir / "journal"
        log = FileWriteLog(folder, self._settings.writes.log_max_bytes)
        backends = self._backends
        return Replication(
            log, backends.replicas, backends.documents_replica, self._reader(), self._build_id, WRITE_TIMEOUT_S
        )

    def _open_caches(self) -> Caches:
        engine = self._backends.embedded
        local: list[VersionSource] = [
            *([engine.index] if engine else []),
            *([self._replication] if self._replication else []),
        ]
        return Caches(self._settings, local, engine is None, self._stack)

    def service(self) -> Service:
        """The connected parts."""
        settings, caches = self._settings, self._caches
        trust = GraphTrust(settings.storage.data_dir / TRUST_FILE)
        calibrations = ConfidenceCalibrations(settings.storage.data_dir / CALIBRATION_FILE)
        search = self._search(trust, calibrations)
        maintenance = self._maintenance(trust, calibrations, search.retrieval.preparation.encoders)
        metadata_keys = MetadataKeys(settings.storage.data_dir / "metadata-keys")
        keyring = Keyring(settings.access.keys_file) if settings.access.keys_file else None
        scope = Scope(settings.access.tenant, settings.access.environment)
        health = HealthService(
            sources=tuple(self._backends.bindings),
            servers=self._backends.servers,
            searches=search_probes(self._backends, scope, self._model.dimension),
            embedded=self._backends.embedded,
            static_encoder=StaticEncoderReport(self._static_encoder),
            replication=self._replication,
            counters=caches.counters,
            maintenance=maintenance,
            metadata_keys=metadata_keys,
            link_strengths=self._backends.link_strengths,
            encoder=f"{self._model.identity}, {self._model.dimension} numbers",
            anonymous_scope=scope,
        )
        folder, interval_s = settings.storage.data_dir, settings.writes.upkeep_interval_s
        upkeep = Upkeep(maintenance, folder, interval_s, lambda: measure_in_process(settings))
        return Service(
            settings=settings,
            search=search,
            documents=self._documents(metadata_keys),
            maintenance=maintenance,
            health=health,
            keyring=keyring,
            anonymous=anonymous_operator(scope, settings.access.anonymous_clearance),
            upkeep=upkeep,
            background=background_tasks(
                settings.writes, maintenance, upkeep, keyring, bool(self._replication), caches.counters
            ),
            cache_report=caches.report,
            state=StateReader(
                search.admission,
                search.retrieval.breakers.states,
                settings.storage.data_dir,
                self._backends.embedded,
                self._replication,
                self._generation,
                search.build_id,
            ),
            count=self._count,
        )

    def _search(self, trust: GraphTrust, calibrations: ConfidenceCalibrations) -> SearchService:
        settings, caches, backends = self._settings, self._caches, self._backends
        encoders = query_encoders(self._model, self._static_encoder, bool(backends.servers), self._stack)
        breakers = CircuitBreakers(
            MAX_FAILURES, settings.sources.circuit_reset_ms / 1_000, settings.sources.timeout_ms / 1_000
        )
        preparation = QueryPreparation(encoders, expander(settings.encoding.query_expansion))
        centralities = backends.centralities or NoCentralities()
        return SearchService(
            embedding_model=self._model.identity,
            settings=settings,
            sources=[binding.source for binding in backends.bindings.values()],
            retrieval=Retrieval(self._calls, preparation, breakers, CollectionSplitter(caches.memo("collections"))),
            centralities=MemoizedCentralities(centralities, caches.memo("centralities"), caches.data_versions.current),
            snapshots=self._snapshots(),
            rerank=open_reranker(settings, self._stack),
            data_versions=caches.data_versions,
            cache=caches.responses,
            admission=Admission(self._max_concurrent(), _MAX_WAITING),
            build_id=self._current_build_id,
            content_ids=content_ids(settings),
            trust=trust.weight_factor,
            calibrations=calibrations.calibrations,
            mismatches=self._mismatches,
            max_query_chars=self._max_query_chars,
        )

    def _snapshots(self) -> IndexSnapshots:
        engine = self._backends.embedded
        return IndexSnapshots(
            self._caches.data_versions,
            self._generation,
            lambda: engine.index.current() if engine else None,
            self._backends.documents,
            bool(self._backends.servers),
        )

    def _documents(self, metadata_keys: MetadataKeys) -> DocumentService:
        replication = self._replication
        has_unapplied: Callable[[], bool] = replication.has_unapplied if replication else lambda: False
        return DocumentService(
            documents=self._reader(),
            writer=InvalidatingWriter(self._writer(), self._caches.data_versions, has_unapplied),
            metadata_keys=metadata_keys,
            pipeline=IndexingPipeline(self._model, extractor(self._settings.encoding.entity_extractor)),
            reads=Admission(_MAX_NETWORK, _MAX_WAITING),
            uploads=defaultdict(lambda: Admission(_MAX_UPLOADS, _MAX_WAITING_WRITES)),
            writes=Admission(_MAX_WRITES, _MAX_WAITING_WRITES),
            is_current=replication.is_current if replication else lambda: True,
            generation=self._generation,
            write_timeout_s=WRITE_TIMEOUT_S,
        )

    def _maintenance(
        self, trust: GraphTrust, calibrations: ConfidenceCalibrations, encoders: QueryEncoders
    ) -> MaintenanceService:
        engine, bindings = self._backends.embedded, self._backends.bindings
        vectors = next(each for each in bindings.values() if "query_vector" in each.source.needs)
        graph = next(each for each in bindings.values() if each.source.is_graph)
        followed: list[Callable[[], object]] = [self._static_encoder.refresh, trust.refresh, calibrations.refresh]
        if engine:
            followed += [engine.index.refresh, engine.centrality_file.refresh]
        if self._replication:
            followed.append(self._replication.refresh)
        return MaintenanceService(
            followed=tuple(followed),
            generation=self._generation,
            data_versions=self._caches.data_versions,
            trust=trust,
            trust_measurement=TrustMeasurement(self._reader(), self._model, vectors.retriever, graph.retriever),
            calibrations=calibrations,
            calibration_measurement=CalibrationMeasurement(
                self._reader(), pseudo_queries, encoders, [(each.source, each.retriever) for each in bindings.values()]
            ),
            centrality=self._settings.ranking.centrality,
            embedded=engine,
            replication=self._replication,
            graph_maintenance=self._backends.graph_maintenance,
        )

    def _writer(self) -> DocumentWriter:
        if self._replication:
            return self._replication
        if self._backends.embedded is None:
            raise ValueError("there is neither an embedded index nor a server to write to")
        return self._backends.embedded.index

    def _reader(self) -> DocumentReader:
        if self._backends.documents:
            return self._backends.documents
        if self._backends.embedded is None:
            raise ValueError("there is neither an embedded index nor a server to read documents from")
        return self._backends.embedded.index

    def _generation(self) -> int:
        if self._replication:
            return self._replication.generation()
        return self._backends.embedded.generation() if self._backends.embedded else 0

    def _current_build_id(self) -> str:
        if self._replication or self._backends.embedded is None:
            return self._build_id
        return self._backends.embedded.index.build_id

    async def _count(self) -> int:
        if self._backends.embedded:
            return self._backends.embedded.documents()
        return await self._backends.replicas[self._backends.documents_replica].count()

    def _mismatches(self) -> Mapping[str, str]:
        """By source, how its index was built, if not as the settings require, as far as it is known."""
        mismatches = {source: check.mismatch for source, check in self._checks.items() if check.mismatch}
        if self._backends.embedded and (mismatch := self._backends.embedded.mismatch()):
            mismatches["index"] = mismatch
        return mismatches

    def _max_concurrent(self) -> int:
        settings = self._settings
        waits = (
            self._backends.servers
            or settings.rerank.url != NONE
            or settings.encoding.query_expansion.startswith("python://")
        )
        return settings.server.search_concurrency or (_MAX_NETWORK if waits else _MAX_COMPUTING)
