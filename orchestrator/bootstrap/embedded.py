"""The embedded engine as one part of a service: its sources, its maintenance and its health."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapters import Retriever
from adapters.embed.fit import MAX_DOCUMENTS, fit
from adapters.embed.minilm import MiniLM
from adapters.embed.static_encoder_file import StaticEncoderFile
from adapters.embedded.component import IndexComponent
from adapters.embedded.index import EmbeddedIndex
from adapters.embedded.rebuild import Rebuilt, rebuild
from adapters.embedded.replica import EmbeddedReplica
from adapters.graph.centrality import CentralityFile
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.extract import extractor_identity
from adapters.keyword.embedded import EmbeddedKeyword, KeywordComponent
from adapters.ports.graph import CentralityReader, EntityLookup, LinkStrengthReader
from adapters.ports.server import ServerSource
from adapters.sources import GRAPH, KEYWORD, VECTOR
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from fusion import Source
from orchestrator.service.maintenance import Progress
from orchestrator.settings.backends import EMBEDDED
from orchestrator.settings.groups import Settings

FORMATS: Mapping[str, str] = {
    VECTOR.name: VectorComponent.format,
    KEYWORD.name: KeywordComponent.format,
    GRAPH.name: GraphComponent.format,
}
"""How each embedded source is built, in a word."""

MIN_FIT_DOCUMENTS = 200
"""With fewer documents there is too little to fit a static encoder to, and no load that would need one."""


_FOLDER = "index"
"""Its name in the data folder."""

_Components: TypeAlias = tuple[VectorComponent | None, KeywordComponent | None, GraphComponent | None]


def _components(settings: Settings) -> _Components:
    """The components that the settings name."""
    urls = settings.sources.urls
    return (
        VectorComponent() if urls[VECTOR.name] == EMBEDDED else None,
        KeywordComponent() if urls[KEYWORD.name] == EMBEDDED else None,
        GraphComponent(settings.ranking.link_strengths) if urls[GRAPH.name] == EMBEDDED else None,
    )


def _build(components: _Components, prepared_by: str) -> tuple[list[IndexComponent[Any]], str]:
    """The components that there are, and the build id of an index of them."""
    chosen: list[IndexComponent[Any]] = [each for each in components if each]
    return chosen, "+".join((prepared_by, *(component.format for component in chosen)))


def rebuild_index(settings: Settings, with_deleted: bool, progress: Callable[[int], None]) -> Rebuilt:
    """Put a new index in the place of a damaged one. See :func:`adapters.embedded.rebuild.rebuild`."""
    model = MiniLM()
    components, build_id = _build(_components(settings), prepared_by(settings, model))
    folder = settings.storage.data_dir / _FOLDER
    return rebuild(folder, components, build_id, model, with_deleted, progress)


def prepared_by(settings: Settings, model: MiniLM) -> str:
    """Identities of the encoder and of the extractor of documents: the first part of a build id."""
    return f"{model.identity}+{extractor_identity(settings.encoding.entity_extractor)}"


class EmbeddedEngine:
    """The embedded sources that the settings name, in one index that has the documents, too.

    See :class:`orchestrator.service.maintenance.EmbeddedMaintenance` and
    :class:`orchestrator.service.health.EmbeddedHealth`.

    :param prepared_by: see :func:`prepared_by`.
    :raises AdapterError: if the index cannot be opened.
    """

    def __init__(self, settings: Settings, prepared_by: str, model: MiniLM, static_encoder: StaticEncoderFile) -> None:
        self._vector, self._keyword, self._graph = components = _components(settings)
        folder = settings.storage.data_dir / _FOLDER
        chosen, build_id = _build(components, prepared_by)
        self.index = EmbeddedIndex(folder, chosen, build_id, settings.storage.strict_index)
        self.replica = EmbeddedReplica(self.index)
        self.centrality_file = CentralityFile(folder / "centrality.msgpack", settings.ranking.centrality)
        self._model = model
        self._static_encoder = static_encoder
        self._model_dir = settings.storage.model_dir
        self._graph_source = (
            EmbeddedGraph(self.index, self._graph, self.centrality_file) if self._graph is not None else None
        )

    @property
    def centralities(self) -> CentralityReader | None:
        """Of the embedded graph, if the graph is embedded."""
        return self._graph_source

    @property
    def link_strengths(self) -> LinkStrengthReader | None:
        """Of the embedded graph, if the graph is embedded."""
        return self._graph_source

    def bindings(self) -> list[tuple[Source, Retriever, ServerSource | None, EntityLookup | None]]:
        """The embedded sources, as :class:`orchestrator.bootstrap.sources.SourceBinding` has them."""
        bindings: list[tuple[Source, Retriever, ServerSource | None, EntityLookup | None]] = []
        if self._vector:
            bindings.append((VECTOR, EmbeddedVector(self.index, self._vector), None, None))
        if self._keyword:
            bindings.append((KEYWORD, EmbeddedKeyword(self.index, self._keyword), None, None))
        if self._graph_source:
            bindings.append((GRAPH, self._graph_source, None, self._graph_source))
        return bindings

    def damaged(self) -> list[str]:
        """See :class:`orchestrator.service.health.EmbeddedHealth`."""
        return [str(path) for path in self.index.damaged()]

    def documents_by_source(self) -> Mapping[str, int]:
        """See :class:`orchestrator.service.health.EmbeddedHealth`; components are named after their sources."""
        return self.index.documents_by_component()

    def documents(self) -> int:
        """See :class:`orchestrator.service.health.EmbeddedHealth`."""
        return self.index.current().segments.count

    def segments(self) -> int:
        """See :class:`orchestrator.service.health.EmbeddedHealth`."""
        return len(self.index.current().segments.segments)

    def generation(self) -> int:
        """See :class:`orchestrator.service.health.EmbeddedHealth`."""
        return self.index.generation()

    def newest_generation(self) -> int:
        """See :class:`orchestrator.service.state.EmbeddedState`."""
        return self.index.newest_generation()

    def mismatch(self) -> str | None:
        """See :class:`orchestrator.service.health.EmbeddedHealth`."""
        return self.index.mismatch

    def static_encoder_outdated(self) -> bool:
        """See :class:`orchestrator.service.maintenance.EmbeddedMaintenance`."""
        documents = self.documents()
        encoder = self._static_encoder.encoder
        return documents >= MIN_FIT_DOCUMENTS and (
            encoder is None or min(documents, MAX_DOCUMENTS) > 2 * encoder.documents
        )

    def merge(self, progress: Progress) -> None:
        """See :class:`orchestrator.service.maintenance.EmbeddedMaintenance`."""
        if self.index.needs_optimizing():
            progress("one segment")
            self.index.optimize()
        if self._graph and self.documents() and self._graph.is_outdated(self.index.current().component(self._graph)):
            progress("strengths of links")
            self.index.rebuild()

    def measure(self, progress: Progress) -> None:
        """See :class:`orchestrator.service.maintenance.EmbeddedMaintenance`."""
        if self._graph and self.index.generation() > self.centrality_file.generation:
            progress(self.centrality_file.name)
            view = self.index.current()
            self.centrality_file.compute(view.component(self._graph), view.segments, view.manifest.generation)
        if self.static_encoder_outdated():
            progress("static encoder")
            records = self.index.current().sample_with_vectors(MAX_DOCUMENTS)
            fit(self._model, records, self._model_dir, progress).save(self._static_encoder.path)
            self._static_encoder.refresh()
