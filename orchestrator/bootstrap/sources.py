"""The sources: which adapter searches each, where it stores its documents, and the chain of its search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from adapters import SENSITIVITIES, Scope, Viewer
from adapters.embedded import EmbeddedSources
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.model.sources import GRAPH, KEYWORD, SOURCES, VECTOR
from adapters.model.spelling import allowed_names
from adapters.ports import DocumentFetcher, Retriever, SearchedDocuments, Snapshot, SourceQuery, TermScorer
from adapters.ports.graph import (
    CentralityReader,
    EntityLookup,
    GraphMaintenance,
    LinkStrengthReader,
    NeighborhoodReader,
)
from adapters.ports.optional_packages import extra
from adapters.ports.retriever import ImmediateRetriever
from adapters.ports.server import ServerSource
from adapters.servers.fingerprints import build_name
from adapters.servers.server import Limits, Partitioning
from fusion.columns import Ranking
from fusion.source import Source
from orchestrator.auth.visibility import access_filter
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.replica_applier import AdministeredReplica
from orchestrator.retrieval.build_check import BuildCheckedRetriever
from orchestrator.retrieval.memo import Memo, MemoizedRetriever
from orchestrator.retrieval.retry import RetryBudget, RetryingRetriever
from orchestrator.retrieval.source_call import SourceCall
from orchestrator.settings.backends import EMBEDDED
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import SettingsError

WRITE_TIMEOUT_S = 30.0
"""Time limit of a server for one batch of a write; also of the wait for a slot to write."""
_MAX_CONNECTIONS = 32
"""Connections to each server."""
_SERVER_FORMAT = 12
"""Incremented whenever the adapters of servers store the same document differently."""


@dataclass(frozen=True, slots=True)
class SourceBinding:
    """A source and its adapter.

    :param server: the same adapter, if it is on a server.
    :param entities: the same adapter, if it can look up entities.
    :param immediate: the same adapter, if its search waits for nothing.
    :param terms: the same adapter, if it can explain its scores by term.
    """

    source: Source
    retriever: Retriever
    server: ServerSource | None = None
    entities: EntityLookup | None = None
    immediate: ImmediateRetriever | None = None
    terms: TermScorer | None = None


@dataclass(slots=True)
class Backends:
    """The sources, and the replicas of the documents.

    :param replicas: by the name that acknowledgements and cursors use.
    :param documents: reads documents from a server; ``None`` if they are read from the embedded engine.
    :param documents_replica: the name of the replica that documents are read from.
    :param copies: further readers of documents by id, by the name of their replica, in the order of their priority.
    """

    bindings: dict[str, SourceBinding] = field(default_factory=dict)
    replicas: dict[str, AdministeredReplica] = field(default_factory=dict)
    embedded: EmbeddedSources | None = None
    documents: SearchedDocuments | None = None
    documents_replica: str = ""
    copies: dict[str, DocumentFetcher] = field(default_factory=dict)
    centralities: CentralityReader | None = None
    link_strengths: LinkStrengthReader | None = None
    neighborhoods: NeighborhoodReader | None = None
    graph_maintenance: GraphMaintenance | None = None

    @property
    def servers(self) -> dict[str, ServerSource]:
        """The sources that are on a server, by name."""
        return {name: binding.server for name, binding in self.bindings.items() if binding.server}


def server_backends(settings: Settings, dimension: int, build_id: str) -> Backends:
    """The sources on servers. Connections are opened on first use.

    :raises Unavailable: if a driver is not installed.
    """
    backends = Backends()
    limits = Limits(settings.sources.timeout_ms / 1_000, WRITE_TIMEOUT_S, _MAX_CONNECTIONS)
    index_name, layouts = settings.storage.index_name, settings.server_indexes

    def add(
        source: Source,
        adapter: ServerSource,
        address: object,
        entities: EntityLookup | None = None,
        terms: TermScorer | None = None,
    ) -> str:
        replica = f"{source.name} {address} {build_name(index_name, build_id)}"
        backends.bindings[source.name] = SourceBinding(source, adapter, adapter, entities, terms=terms)
        backends.replicas[replica] = adapter
        return replica

    if address := settings.sources.address(VECTOR.name):
        with extra("qdrant"):
            from adapters.vector import qdrant, qdrant_collection, qdrant_connection  # noqa: PLC0415
        client = qdrant_connection.connect(address, settings.sources.qdrant_api_key.get_secret_value() or None, limits)
        layout = qdrant_collection.CollectionLayout(
            shards=layouts.qdrant_shards,
            copies=layouts.replication_factor,
            on_disk=layouts.qdrant_on_disk,
            quantization=layouts.qdrant_quantization,
            write_consistency=layouts.qdrant_write_consistency,
        )
        vectors = qdrant.QdrantVector(client, index_name, dimension, build_id, limits, layout)
        backends.copies[add(VECTOR, vectors, address)] = vectors
    if address := settings.sources.address(KEYWORD.name):
        with extra("opensearch"):
            from adapters.keyword import opensearch, opensearch_client  # noqa: PLC0415
        partitioning = Partitioning(shards=layouts.opensearch_shards, copies=layouts.replication_factor)
        keyword = opensearch.OpenSearchKeyword(
            opensearch_client.connect(address, limits), index_name, build_id, limits, partitioning
        )
        backends.documents_replica = add(KEYWORD, keyword, address, terms=keyword)
        backends.documents = keyword
    if address := settings.sources.address(GRAPH.name):
        with extra("memgraph"):
            from adapters.graph import bolt, memgraph  # noqa: PLC0415
        graph = memgraph.MemgraphGraph(
            bolt.Bolt(address, limits), index_name, build_id, settings.ranking.link_strengths
        )
        add(GRAPH, graph, address, graph)
        backends.centralities = backends.link_strengths = backends.graph_maintenance = graph
        backends.neighborhoods = graph
    return backends


def add_embedded(backends: Backends, settings: Settings, engine: EmbeddedSources) -> None:
    """Add the embedded sources. Documents are then read from the embedded engine, which is the nearest replica."""
    for source, retriever, entities in engine.retrievers():
        terms = retriever if isinstance(retriever, EmbeddedKeyword) else None
        backends.bindings[source.name] = SourceBinding(
            source, retriever, entities=entities, immediate=retriever, terms=terms
        )
    backends.embedded = engine
    backends.replicas["embedded"] = engine.replica
    backends.documents, backends.documents_replica = None, "embedded"
    if settings.sources.urls[GRAPH.name] == EMBEDDED:
        backends.centralities, backends.link_strengths = engine.centralities, engine.link_strengths
        backends.neighborhoods = engine.neighborhoods


def build_formats(settings: Settings, embedded_formats: Mapping[str, str]) -> Iterator[str]:
    """The index format of each source."""
    for name in (VECTOR.name, KEYWORD.name, GRAPH.name):  # the order of the components of the embedded index
        url = settings.sources.urls[name]
        scheme = url.partition("://")[0].partition("+")[0]
        yield embedded_formats[name] if url == EMBEDDED else f"{scheme}-{_SERVER_FORMAT}"


def source_calls(
    backends: Backends, settings: Settings, memo: Callable[[str], Memo[Any]], data_versions: DataVersions
) -> tuple[dict[str, SourceCall], dict[str, BuildCheckedRetriever]]:
    """How each source is searched, and the build checks of those on servers."""
    calls: dict[str, SourceCall] = {}
    checks: dict[str, BuildCheckedRetriever] = {}
    for name, binding in backends.bindings.items():
        retriever = binding.retriever
        if binding.server:
            checks[name] = BuildCheckedRetriever(binding.server, settings.storage.strict_index)
            retriever = RetryingRetriever(checks[name], RetryBudget(settings.sources.retry_budget_ratio))
        if binding.immediate:
            calls[name] = SourceCall(binding.source, binding.immediate, binding.entities)
            continue
        chained = MemoizedRetriever(retriever, memo(name), data_versions.current)
        calls[name] = SourceCall(binding.source, chained, binding.entities)
    return calls, checks


def search_probes(backends: Backends, scope: Scope, dimension: int) -> dict[str, Callable[[], Awaitable[Ranking]]]:
    """A test search for each source that is neither in the embedded index nor on a server.

    :param dimension: of the query vector.
    """
    visible = access_filter(scope, Viewer(SENSITIVITIES[0]))
    vector = np.full(dimension, dimension**-0.5, np.float32)
    query = SourceQuery("health", 1, scope, visible, visible, vector)
    embedded = backends.embedded.documents_by_source() if backends.embedded else {}
    return {
        name: partial(binding.retriever.search, query)
        for name, binding in backends.bindings.items()
        if not binding.server and name not in embedded
    }


class NoCentralities:
    """The centralities of a service without a graph."""

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        """See :class:`adapters.ports.CentralityReader`."""
        del scope, ids, snapshot, clearance
        return {}


def in_order(bindings: Mapping[str, SourceBinding]) -> dict[str, SourceBinding]:
    """The sources in the order in which responses name them; additional ones last."""
    order = [source.name for source in SOURCES]
    return dict(sorted(bindings.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def check_weights(settings: Settings, sources: Collection[str]) -> None:
    """Check that every weight of the settings is that of a source.

    :raises SettingsError: if one is not.
    """
    for name in settings.ranking.weights:
        if name not in sources:
            message = f"TRIVIUM_WEIGHTS has {name[:80]!r}, which is no source, {allowed_names(name, sources)}"
            raise SettingsError(message)
