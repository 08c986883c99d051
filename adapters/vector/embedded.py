"""Vectors in this process: HNSW over every large segment, exact search over small and filtered ones.

Malkov, Yashunin: "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small
World graphs", 2018. A long document has a vector for each of its windows, of which the nearest counts. The graph has
8-bit vectors; those that it finds are scored again with the full vectors, so a score is the exact cosine.
docs/decisions/0002-embedded-engines.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from adapters.engine.columns import Flags
from adapters.engine.component import Delta
from adapters.engine.index import EmbeddedIndex, pinned_view
from adapters.engine.segment import Segment
from adapters.engine.segment_set import Mask, SegmentSet
from adapters.model.errors import Rejected
from adapters.model.sources import VECTOR
from adapters.ports.encoders import Vector, encoder_of
from adapters.ports.retriever import SourceQuery
from adapters.storage import files
from adapters.vector import hnsw
from adapters.vector.width import search_width
from fusion.columns import Ranking
from fusion.largest import top

_EXACT_ROWS = 4_096
"""Maximum vectors of a segment without a graph: an exact search of them costs no more, and misses nothing."""
_EXACT_RATIO = 2
"""All vectors that a filter leaves are compared if their number squared is at most this, times the rows of the segment,
times the width of the search: then a graph search, which passes many rows that are filtered out, takes longer."""
_SCORED_AGAIN = 10
"""Number of documents beyond the requested ones that are scored with the full vectors: 8 bits change the order."""

_Graphs = Mapping[str, hnsw.HnswGraph]


class VectorComponent:
    """The files: one HNSW graph for each segment that is large enough, named after it."""

    name = "vector"
    format = "hnsw-sq8-1"

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Link the graphs of existing segments, build those of the new ones."""
        del delta
        names = {f"{segment.name}.faiss" for segment in segments.segments}
        replaced = [path for path in previous.glob("*.faiss") if path.name not in names] if previous else []
        for segment in segments.segments:
            file = f"{segment.name}.faiss"
            if previous and (previous / file).exists():
                files.link_or_copy(previous / file, target / file)
            elif len(segment.vectors) > _EXACT_ROWS:
                hnsw.build(segment.vectors, target / file, replaced)

    def open(self, folder: Path, segments: SegmentSet, before: _Graphs | None) -> _Graphs:
        """Map the graphs; all processes use the same memory."""
        del segments
        if not folder.is_dir():
            raise FileNotFoundError(f"no vector index in {folder}")
        known = before or {}
        return {path.stem: known.get(path.stem) or hnsw.HnswGraph(path) for path in folder.glob("*.faiss")}

    def count(self, index: _Graphs, segments: SegmentSet) -> int:
        """Number of living documents, less the vectors that their graphs lack."""
        missing = sum(len(each.vectors) - len(index[each.name]) for each in segments.segments if each.name in index)
        return segments.count - missing

    def fragment_count(self, index: _Graphs) -> int:  # noqa: ARG002
        """Returns 1: a segment has one graph, and segments are counted elsewhere."""
        return 1


class EmbeddedVector:
    """The vector source of an embedded index with a :class:`VectorComponent`."""

    def __init__(self, index: EmbeddedIndex, component: VectorComponent) -> None:
        self._index = index
        self._component = component

    async def search(self, query: SourceQuery) -> Ranking:
        """See :class:`adapters.ports.Retriever`."""
        return self.search_now(query)

    def search_now(self, query: SourceQuery) -> Ranking:
        """The nearest documents by cosine; the score is the cosine, in [-1, 1]. Ties by position.

        :raises Rejected: if the query has no vector, one of another length, or if another encoder made the documents'.
        """
        view = pinned_view(self._index, query)
        segments = view.segments
        if query.vector is None:
            raise Rejected("the vector source needs a vector, and the query has none")
        if not len(segments):
            return Ranking.empty(VECTOR.name)
        if encoder_of(self._index.build_id) != encoder_of(self._index.required_build):
            raise Rejected("the index has vectors of another encoder than the settings name")
        dimension = segments.segments[0].vectors.shape[1]
        if len(query.vector) != dimension:
            raise Rejected(f"the query's vector has {len(query.vector)} numbers, the index has {dimension}")
        mask = segments.mask(query.filter)
        graphs = view.component(self._component)
        by_segment = [
            _search(segment, graphs.get(segment.name), int(base), query.vector, query.depth, mask)
            for segment, base in zip(segments.segments, segments.bases[:-1], strict=True)
        ]
        positions = np.concatenate([positions for positions, _ in by_segment])
        scores = np.concatenate([scores for _, scores in by_segment])
        best = top(scores, positions, query.depth)
        return Ranking.of_docs(VECTOR.name, positions.take(best), scores.take(best), segments)


def _search(
    segment: Segment, graph: hnsw.HnswGraph | None, base: int, vector: Vector, depth: int, mask: Mask
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Positions of a segment with the cosines of their nearest windows, the best ``depth`` among them, in no order."""
    owners = segment.owners
    flags = None if mask.everything else mask.flags[base : base + len(segment)]
    if flags is not None and owners is not None:
        flags = flags.take(owners)
    rows = _candidates(segment, graph, vector, depth, flags)
    # Each row by itself: in the product with a matrix the last digit of a score depends on the rows around it.
    scores = np.vecdot(segment.vectors if rows is None else segment.vectors.take(rows, axis=0), vector)
    if owners is not None:
        rows, scores = _best_windows(owners if rows is None else owners.take(rows), scores)
    return base + (np.arange(len(scores)) if rows is None else rows), scores


def _candidates(
    segment: Segment, graph: hnsw.HnswGraph | None, vector: Vector, depth: int, flags: Flags | None
) -> npt.NDArray[np.int64] | None:
    """The vectors among which are those of the ``depth`` nearest documents; ``None``: all.

    :param flags: by vector, whether a filter passes its document; all by default.
    """
    count = len(segment.vectors)
    allowed = count if flags is None else int(flags.sum())
    wanted = depth  # vectors: more than documents if the nearest windows are of few documents
    while graph is not None and allowed > wanted:
        width = search_width(wanted, is_filtered=flags is not None)
        if allowed**2 <= _EXACT_RATIO * count * width:
            break
        rows = graph.nearest(vector, wanted + _SCORED_AGAIN, width, flags)
        if len(rows) < wanted:  # a part of the graph may not be connected
            return rows if flags is None else np.flatnonzero(flags)
        if segment.owners is None or len(np.unique(segment.owners.take(rows))) >= depth:
            return rows
        wanted *= 2
    return None if flags is None else np.flatnonzero(flags)


def _best_windows(
    owners: npt.NDArray[np.int32], scores: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Each document of some vectors once, with the best of its scores."""
    order = owners.argsort(kind="stable")
    sorted_owners = owners.take(order)
    first = np.flatnonzero(np.diff(sorted_owners, prepend=-1))
    return sorted_owners.take(first).astype(np.int64), np.maximum.reduceat(scores.take(order), first)
