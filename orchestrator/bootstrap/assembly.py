"""Opens a service: creates its parts and connects them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import inf

import anyio.to_thread
from threadpoolctl import threadpool_limits

from adapters import Scope
from adapters.encoders.static_fit import pseudo_queries
from adapters.graph.name_rules import NameRules
from adapters.keyword.expand import expander
from adapters.keyword.snippets import snippet
from adapters.ports.encoders import Vector
from adapters.rerank import NONE
from orchestrator.auth.keyring import Keyring
from orchestrator.auth.principal import anonymous_operator
from orchestrator.bootstrap.background import background_tasks, measure_in_process
from orchestrator.bootstrap.caches import Caches, content_ids, is_open
from orchestrator.bootstrap.encoders import Encoding, open_encoding, query_encoders
from orchestrator.bootstrap.feedback import open_feedback
from orchestrator.bootstrap.replicas import Replicas, open_replicas
from orchestrator.bootstrap.rerankers import open_reranker
from orchestrator.bootstrap.server_indexes import prepare_servers
from orchestrator.bootstrap.sources import (
    NoCentralities,
    SourceBinding,
    check_weights,
    search_probes,
    source_calls,
)
from orchestrator.bootstrap.strategies import open_strategies
from orchestrator.bootstrap.writing import document_service, extractor_of, open_stores, recorded_writer
from orchestrator.indexing.generations.stores import Stores
from orchestrator.indexing.metadata_keys import KEYS_FOLDER, MetadataKeys
from orchestrator.indexing.snapshots import IndexSnapshots
from orchestrator.measurement.calibration import CALIBRATION_FILE, CalibrationMeasurement, ConfidenceCalibrations
from orchestrator.measurement.graph_trust import TRUST_FILE, GraphTrust
from orchestrator.measurement.trust_measurement import TrustMeasurement
from orchestrator.planning.planner import MAX_QUERY_CHARS
from orchestrator.results.explanation import ExplainStage
from orchestrator.results.tokens import Measure
from orchestrator.retrieval.build_check import BuildCheckedRetriever
from orchestrator.retrieval.circuit_breakers import MAX_FAILURES, CircuitBreakers
from orchestrator.retrieval.collections import CollectionSplitter
from orchestrator.retrieval.memo import MemoizedCentralities
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.retrieval.query_preparation import QueryPreparation
from orchestrator.retrieval.retrieve import Retrieval
from orchestrator.retrieval.source_call import SourceCall
from orchestrator.schema.search import EncoderName
from orchestrator.service.admission import Admission
from orchestrator.service.batch import BatchService
from orchestrator.service.feedback import FeedbackService
from orchestrator.service.folders import FolderService
from orchestrator.service.health import HealthService
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.neighbors import NeighborService
from orchestrator.service.replica_fill import ReplicaFill
from orchestrator.service.search import SearchService
from orchestrator.service.service import Service
from orchestrator.service.shadow import Shadow
from orchestrator.service.state import StateReader
from orchestrator.service.upkeep import Upkeep
from orchestrator.settings.groups import Settings

_MAX_COMPUTING, _MAX_NETWORK = 1, 64
"""Concurrent searches of a process that only computes, and of one that waits for servers."""
_MAX_WAITING = 256
"""Searches of all tenants that may wait for a slot."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts that several use cases share."""

    settings: Settings
    encoding: Encoding
    replicas: Replicas
    caches: Caches
    encoders: QueryEncoders
    trust: GraphTrust
    calibrations: ConfidenceCalibrations
    stores: Stores


@asynccontextmanager
async def open_generation(
    settings: Settings,
    *,
    prepare: bool = True,
    more_sources: Sequence[SourceBinding] = (),
    max_query_chars: int = MAX_QUERY_CHARS,
) -> AsyncIterator[Service]:
    """Open the generation in the data folder of the settings. See :func:`open_service`.

    Indexes that do not exist on servers yet are created. The service also starts if a server is unavailable: its source
    is missing from responses until the server is available.

    :param prepare: whether servers are contacted before the first request.
    :param more_sources: sources besides those that the settings name.
    :raises KeyFileError: if the file of keys cannot be read.
    :raises SettingsError: if a weight is that of no source.
    :raises AdapterError: if the embedded engine cannot be opened, or ``strict_index`` refuses an index.
    """
    async with AsyncExitStack() as stack:
        # One thread per query: queries run in parallel already, and idle threads of BLAS spin after each call.
        stack.enter_context(threadpool_limits(1, user_api="blas"))
        data_dir = settings.storage.data_dir
        encoding = await anyio.to_thread.run_sync(open_encoding, settings)
        replicas = await open_replicas(settings, encoding, more_sources, stack)
        check_weights(settings, replicas.backends.bindings)
        caches = Caches(settings, replicas.local, replicas.backends.embedded is None, stack)
        metadata_keys = MetadataKeys(data_dir / KEYS_FOLDER)
        parts = _Parts(
            settings,
            encoding,
            replicas,
            caches,
            query_encoders(encoding, bool(replicas.backends.servers), stack),
            GraphTrust(data_dir / TRUST_FILE),
            ConfidenceCalibrations(data_dir / CALIBRATION_FILE),
            open_stores(settings, encoding, replicas, metadata_keys, caches.data_versions),
        )
        calls, checks = source_calls(replicas.backends, settings, caches.memo, caches.data_versions)
        if prepare:
            await prepare_servers(replicas.backends.servers, checks, settings.storage.strict_index)
        maintenance = _maintenance(parts)
        search = _search(parts, calls, checks, maintenance, max_query_chars, stack)
        yield _service(parts, search, maintenance, stack)


def _service(parts: _Parts, search: SearchService, maintenance: MaintenanceService, stack: AsyncExitStack) -> Service:
    settings, replicas, counters = parts.settings, parts.replicas, parts.caches.counters
    backends, data_dir = replicas.backends, settings.storage.data_dir
    documents = document_service(settings, parts.encoding, replicas, parts.stores)
    model = parts.encoding.model
    keyring = Keyring(settings.access.keys_file) if settings.access.keys_file else None
    scope = Scope(settings.access.tenant, settings.access.environment)
    upkeep = Upkeep(
        maintenance,
        data_dir,
        settings.writes.upkeep_interval_s,
        lambda: measure_in_process(settings),
        documents=backends.embedded.documents if backends.embedded else lambda: inf,
    )
    shadow = Shadow(search, *settings.requests.shadowed) if settings.requests.shadowed else None
    feedback = open_feedback(settings, stack)
    observers: list[FeedbackService | Shadow] = [feedback] if feedback.is_on else []
    observers += [shadow] if shadow else []
    search.observers = [each.offer for each in observers]
    return Service(
        settings=settings,
        search=search,
        shadow=shadow,
        feedback=feedback,
        batch=BatchService(search),
        documents=documents,
        neighbors=NeighborService(documents, backends.neighborhoods),
        folders=FolderService(documents, NameRules(extractor_of(settings)), parts.encoding.tokens.splitter),
        maintenance=maintenance,
        stores=parts.stores,
        fill=ReplicaFill(parts.stores),
        health=HealthService(
            sources=tuple(backends.bindings),
            servers=backends.servers,
            searches=search_probes(backends, scope, model.dimension),
            embedded=backends.embedded,
            static_encoder_agreement=parts.encoding.static.agreement,
            replication=replicas.replication,
            replica_counts=replicas.counts,
            counters=counters,
            maintenance=maintenance,
            metadata_keys=parts.stores.metadata_keys,
            link_strengths=backends.link_strengths,
            documents=parts.stores.documents,
            encoder=f"{model.identity}, {model.dimension} numbers",
            encode_query=partial(parts.encoders.encode, "a query", "model", "") if model.encodes_texts else None,
            anonymous_scope=scope,
            is_cache_open=is_open(settings.cache.url),
        ),
        keyring=keyring,
        anonymous=anonymous_operator(
            scope, settings.access.open_clearance, settings.access.user, settings.access.teams or ()
        ),
        upkeep=upkeep,
        background=(
            *background_tasks(settings.writes, maintenance, upkeep, keyring, replicas.counts, counters),
            *(each.run for each in observers),
        ),
        cache_report=parts.caches.report,
        state=StateReader(
            search.admission,
            search.retrieval.breakers.states,
            backends.servers,
            data_dir,
            backends.embedded,
            replicas.replication,
            replicas.generation,
            search.build_id,
        ),
        count=replicas.count,
    )


def _search(
    parts: _Parts,
    calls: Mapping[str, SourceCall],
    checks: Mapping[str, BuildCheckedRetriever],
    maintenance: MaintenanceService,
    max_query_chars: int,
    stack: AsyncExitStack,
) -> SearchService:
    settings, caches, replicas = parts.settings, parts.caches, parts.replicas
    backends = replicas.backends
    engine = backends.embedded
    breakers = CircuitBreakers(
        MAX_FAILURES, settings.sources.circuit_reset_ms / 1_000, settings.sources.timeout_ms / 1_000
    )
    preparation = QueryPreparation(parts.encoders, expander(settings.encoding.query_expansion))
    centralities = backends.centralities or NoCentralities()

    def mismatches() -> Mapping[str, str]:
        """The builds that differ from the settings, and what replicas lack, by source, as far as they are known."""
        found = {source: check.mismatch for source, check in checks.items() if check.mismatch}
        if engine and (mismatch := engine.mismatch()):
            found["index"] = mismatch
        if replicas.counts:
            found |= replicas.counts.problems
        return found

    return SearchService(
        embedding_model=parts.encoding.model.identity,
        snippet=snippet,
        measure=Measure(parts.encoding.tokens.ends),
        settings=settings,
        sources=[binding.source for binding in backends.bindings.values()],
        retrieval=Retrieval(
            calls, preparation, breakers, CollectionSplitter(caches.memo("collections")), open_strategies(settings)
        ),
        centralities=MemoizedCentralities(centralities, caches.memo("centralities"), caches.data_versions.current),
        snapshots=IndexSnapshots(
            caches.data_versions,
            replicas.generation,
            lambda: engine.index.current() if engine else None,
            backends.documents,
            bool(backends.servers),
            replicas.copies,
        ),
        rerank=open_reranker(settings, stack),
        explain=ExplainStage(
            settings.storage.index_name, {name: each.terms for name, each in backends.bindings.items() if each.terms}
        ),
        data_versions=caches.data_versions,
        cache=caches.responses,
        admission=Admission(_max_concurrent(settings, bool(backends.servers)), _MAX_WAITING),
        build_id=replicas.build_id,
        content_ids=content_ids(settings),
        trust=parts.trust.weight_factor,
        calibrations=parts.calibrations.calibrations,
        mismatches=mismatches,
        max_query_chars=max_query_chars,
        shows=maintenance.shows,
        known_keys=parts.stores.metadata_keys.keys,
    )


def _max_concurrent(settings: Settings, has_servers: bool) -> int:
    functions = (settings.encoding.query_expansion, settings.encoding.embedder)
    waits = has_servers or settings.rerank.url != NONE or any(each.startswith("python://") for each in functions)
    return settings.server.search_concurrency or (_MAX_NETWORK if waits else _MAX_COMPUTING)


def _maintenance(parts: _Parts) -> MaintenanceService:
    replicas, trust, calibrations = parts.replicas, parts.trust, parts.calibrations
    engine, bindings = replicas.backends.embedded, replicas.backends.bindings
    encoders = parts.settings.encoding.query_encoders
    vectors = next(each for each in bindings.values() if "query_vector" in each.source.needs)
    graph = next(each for each in bindings.values() if each.source.is_graph)
    followed: list[Callable[[], object]] = [parts.encoding.static.refresh, trust.refresh, calibrations.refresh]
    if engine:
        followed += [engine.index.refresh, engine.centrality_file.refresh]
    if replicas.replication:
        followed.append(replicas.replication.refresh)

    async def encode(text: str, encoder: EncoderName) -> Vector:
        # The empty tenant: these queries are generated, and no caller has this tenant.
        return (await parts.encoders.encode(text, encoder, "")).vector

    return MaintenanceService(
        followed=tuple(followed),
        generation=replicas.generation,
        data_versions=parts.caches.data_versions,
        documents=replicas.reader,
        is_current=replicas.is_current,
        metadata_keys=parts.stores.metadata_keys,
        trust=trust,
        trust_measurement=TrustMeasurement(replicas.reader, parts.encoding.model, vectors.retriever, graph.retriever),
        calibrations=calibrations,
        calibration_measurement=CalibrationMeasurement(
            replicas.reader,
            pseudo_queries,
            encode,
            [(each.source, each.retriever) for each in bindings.values()],
            encoders,
        ),
        centrality=parts.settings.ranking.centrality,
        query_encoders=encoders,
        embedded=engine,
        replication=replicas.replication,
        recording=recorded_writer(parts.settings, replicas, parts.stores).recording,
        graph_maintenance=replicas.backends.graph_maintenance,
    )
