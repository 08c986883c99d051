"""The three embedded sources over one index, as one part of a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from adapters.encoders.static_encoder import StaticQueryEncoder
from adapters.encoders.static_encoder_file import StaticEncoderFile
from adapters.encoders.static_fit import MAX_DOCUMENTS
from adapters.engine.index import EmbeddedIndex
from adapters.engine.replica import EmbeddedReplica
from adapters.graph.centrality import CentralityFile
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.keyword.component import KeywordComponent
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.model.sources import GRAPH, KEYWORD, VECTOR
from adapters.ports.graph import CentralityReader, EntityLookup, LinkStrengthReader, NeighborhoodReader
from adapters.ports.replica import VectorRecord
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from fusion.source import Source

MIN_FIT_DOCUMENTS = 200
"""Minimum number of documents to fit a static encoder to: fewer are too little data, and need no faster encoder."""

Progress: TypeAlias = Callable[[str], None]
"""Called with the name of each step when it begins."""

Fit: TypeAlias = Callable[[Sequence[VectorRecord], Progress], StaticQueryEncoder]
"""Fits a static encoder to some documents."""

EmbeddedSource: TypeAlias = EmbeddedVector | EmbeddedKeyword | EmbeddedGraph

Components: TypeAlias = tuple[VectorComponent | None, KeywordComponent | None, GraphComponent | None]
"""The parts of an index that belong to the sources; ``None`` for a source that is on a server."""


class EmbeddedSources:
    """The sources of one embedded index, with its documents, its maintenance and its health.

    :param components: of the index; ``None`` for a source that is on a server.
    :param fit: fits a static encoder to a sample of the documents; ``None`` if none is to be fitted.
    """

    def __init__(
        self,
        index: EmbeddedIndex,
        components: Components,
        centrality_file: CentralityFile,
        static_encoder: StaticEncoderFile,
        fit: Fit | None,
    ) -> None:
        self.index = index
        self.replica = EmbeddedReplica(index)
        self.centrality_file = centrality_file
        self._vector, self._keyword, self._graph = components
        self._static_encoder = static_encoder
        self._fit = fit
        self._graph_source = (
            EmbeddedGraph(self.index, self._graph, self.centrality_file) if self._graph is not None else None
        )

    @property
    def centralities(self) -> CentralityReader | None:
        """The reader of centralities; ``None`` if the graph is on a server."""
        return self._graph_source

    @property
    def link_strengths(self) -> LinkStrengthReader | None:
        """The reader of link strengths; ``None`` if the graph is on a server."""
        return self._graph_source

    @property
    def neighborhoods(self) -> NeighborhoodReader | None:
        """The reader of what is around a document; ``None`` if the graph is on a server."""
        return self._graph_source

    def retrievers(self) -> list[tuple[Source, EmbeddedSource, EntityLookup | None]]:
        """Each embedded source, its search, and, for the graph, what finds the entities of a query."""
        found: list[tuple[Source, EmbeddedSource, EntityLookup | None]] = []
        if self._vector:
            found.append((VECTOR, EmbeddedVector(self.index, self._vector), None))
        if self._keyword:
            found.append((KEYWORD, EmbeddedKeyword(self.index, self._keyword), None))
        if self._graph_source:
            found.append((GRAPH, self._graph_source, self._graph_source))
        return found

    def damaged(self) -> list[str]:
        """The damaged files. Reads all files: blocks."""
        return [str(path) for path in self.index.damaged()]

    @property
    def measured_files(self) -> tuple[Path, ...]:
        """The files of measurements, which :meth:`measure` makes again."""
        return self.centrality_file.path, self._static_encoder.path

    def documents_by_source(self) -> Mapping[str, int]:
        """Number of documents in the index of each embedded source, by its own count."""
        return self.index.documents_by_component()

    def documents(self) -> int:
        """Number of documents."""
        return self.index.current().segments.count

    def segments(self) -> int:
        """Number of segments."""
        return len(self.index.current().segments.segments)

    def generation(self) -> int:
        """The newest commit that this process has opened."""
        return self.index.generation()

    def newest_generation(self) -> int:
        """The newest commit on disk. Reads a file.

        :raises AdapterError: if it cannot be read.
        """
        return self.index.newest_generation()

    def mismatch(self) -> str | None:
        """How the index was built; ``None`` if it was built as the settings require."""
        return self.index.mismatch

    def static_encoder_outdated(self) -> bool:
        """Whether the static encoder is to be fitted, and there is none, or there are twice as many documents now."""
        if self._fit is None:
            return False
        documents = self.documents()
        encoder = self._static_encoder.encoder
        return documents >= MIN_FIT_DOCUMENTS and (
            encoder is None or min(documents, MAX_DOCUMENTS) > 2 * encoder.documents
        )

    def merge(self, progress: Progress, erase: bool) -> None:
        """Merge segments if that makes searches faster. Blocks.

        :param erase: whether they are merged also to remove deleted documents from the files.
        """
        segments = self.index.current().segments
        if self.index.needs_optimizing() or (erase and segments.count < len(segments)):
            progress("one segment")
            self.index.optimize()
        if self._graph and self.documents() and self._graph.is_outdated(self.index.current().component(self._graph)):
            progress("strengths of links")
            self.index.rebuild()

    def measure(self, progress: Progress) -> None:
        """Compute centralities and fit the static encoder, each only if it is outdated. Blocks."""
        if self._graph and self.index.generation() > self.centrality_file.generation:
            progress(self.centrality_file.name)
            view = self.index.current()
            self.centrality_file.compute(view.component(self._graph), view.segments, view.manifest.generation)
        if self._fit is not None and self.static_encoder_outdated():
            progress("static encoder")
            records = self.index.current().sample_with_vectors(MAX_DOCUMENTS)
            self._fit(records, progress).save(self._static_encoder.path)
            self._static_encoder.refresh()
