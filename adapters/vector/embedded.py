"""Vectors in this process: HNSW over every large segment, exact search over the small and the filtered.

Malkov, Yashunin: "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small
World graphs", 2018. The graph holds 8-bit vectors; what it finds is scored again with the full ones, so a score
is the exact cosine. docs/decisions/0002-embedded-engines.md has the measurements.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt

from adapters import files
from adapters.embedded import Catalog, Change, Library, Mask
from adapters.embedded.segment import Segment
from adapters.errors import Rejected
from adapters.port import Query, Vector
from fusion import Ranking

_EXACT_ROWS = 4_096
"""Up to here comparing with every vector costs no more than walking the graph, and misses nothing."""
_EXACT_SHARE = 0.05
"""A filter that leaves less than this share starves the graph: its recall falls, so compare exactly."""
_NEIGHBOURS = 32
_EF_CONSTRUCTION = 80
_EF_SEARCH = 80
"""With 100,000 passages and depth 50: recall .97 (`make bench-load` prints it)."""

_Graphs = Mapping[str, "faiss.IndexHNSWSQ"]


class VectorPart:
    """The files: one HNSW graph for each segment that is large enough, named for it."""

    name = "vector"
    version = "hnsw-sq8-1"

    def build(self, target: Path, previous: Path | None, catalog: Catalog, change: Change) -> None:  # noqa: ARG002
        """Share the graphs of segments that were there, build those of the new ones."""
        for segment in catalog.segments:
            file = f"{segment.name}.faiss"
            if previous and (previous / file).exists():
                files.share(previous / file, target / file)
            elif len(segment) > _EXACT_ROWS:
                faiss.write_index(_graph(segment.vectors), str(target / file))

    def open(self, folder: Path, catalog: Catalog) -> _Graphs:
        """Map the graphs; processes share the memory."""
        del catalog
        if not folder.is_dir():
            raise FileNotFoundError(f"no vector index in {folder}")
        return {path.stem: faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC) for path in folder.glob("*.faiss")}

    def count(self, index: _Graphs, catalog: Catalog) -> int:
        """Vectors of living documents: those in a graph by the graph's count, the others by their rows."""
        held = sum(graph.ntotal for graph in index.values())
        held += sum(len(segment.vectors) for segment in catalog.segments if segment.name not in index)
        return int(held - (len(catalog) - catalog.count))

    def pieces(self, index: _Graphs) -> int:  # noqa: ARG002
        """One for each segment, which the catalog knows."""
        return 1


class EmbeddedVector:
    """The vector source of a library that keeps a :class:`VectorPart`."""

    def __init__(self, library: Library, part: VectorPart) -> None:
        self._library = library
        self._part = part

    async def search(self, query: Query) -> Ranking:
        """The nearest documents by cosine; the score is the cosine, in [-1, 1]. Ties by position.

        :raises Rejected: if the query has no vector, or one of another length than the documents'.
        """
        snapshot = self._library.current()
        catalog = snapshot.catalog
        if query.vector is None:
            raise Rejected("the vector source was asked without a vector")
        if not len(catalog):
            return Ranking("vector", (), ())
        if len(query.vector) != catalog.segments[0].vectors.shape[1]:
            raise Rejected(
                f"the query's vector has {len(query.vector)} numbers, "
                f"the index has {catalog.segments[0].vectors.shape[1]}"
            )
        mask = catalog.mask(query.filter)
        graphs = snapshot.index(self._part)
        found = [
            _search(segment, graphs.get(segment.name), int(base), query.vector, query.depth, mask)
            for segment, base in zip(catalog.segments, catalog.bases[:-1], strict=True)
        ]
        positions = np.concatenate([positions for positions, _ in found])
        scores = np.concatenate([scores for _, scores in found])
        best = np.lexsort((positions, -scores))[: query.depth]
        return catalog.ranking("vector", positions[best].tolist(), scores[best].tolist())


def _search(
    segment: Segment, graph: faiss.IndexHNSWSQ | None, base: int, vector: Vector, depth: int, mask: Mask
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """A segment's best positions with their cosines, in no order."""
    flags = None if mask.everything else mask.flags[base : base + len(segment)]
    allowed = len(segment) if flags is None else int(flags.sum())
    rows: npt.NDArray[np.int64] | None = None
    if graph is not None and allowed > max(_EXACT_SHARE * len(segment), depth):
        parameters = _parameters(max(_EF_SEARCH, depth))
        if flags is not None:
            bitmap = np.packbits(flags, bitorder="little")
            parameters = faiss.SearchParametersHNSW(efSearch=max(_EF_SEARCH, depth), sel=faiss.IDSelectorBitmap(bitmap))
        faiss.omp_set_num_threads(1)  # of this thread: a second one would spin beside us, for nothing
        _, found = graph.search(vector[np.newaxis], depth, params=parameters)
        rows = found[0][found[0] >= 0]
    elif flags is not None:
        rows = np.flatnonzero(flags)
    scores = (segment.vectors if rows is None else segment.vectors[rows]) @ vector
    if len(scores) > depth:
        # With all that tie at the end: which of them stay is decided by position, not by chance.
        best = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
    else:
        best = np.arange(len(scores))
    return base + (best if rows is None else rows[best]), scores[best]


@lru_cache(maxsize=64)
def _parameters(ef: int) -> faiss.SearchParametersHNSW:
    return faiss.SearchParametersHNSW(efSearch=ef)


def _graph(vectors: npt.NDArray[np.float32]) -> faiss.IndexHNSWSQ:
    graph = faiss.IndexHNSWSQ(vectors.shape[1], faiss.ScalarQuantizer.QT_8bit, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _EF_CONSTRUCTION
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    graph.train(vectors)
    graph.add(vectors)
    return graph
