"""What is around a document in the embedded graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from adapters.engine.segment_set import SegmentSet
from adapters.graph.component import Graph, Vocabulary
from adapters.graph.edges import entity_names
from adapters.model.document import Scope
from adapters.ports.graph import MentionedName, Neighborhood
from fusion.random_walk import Walk
from fusion.values import DocId

_MAX_MENTIONS = Walk().seed_fanout
"""A name that more documents mention is left out: walks from it lead nowhere either."""


def find_neighborhood(
    graph: Graph, segments: SegmentSet, visible: npt.NDArray[np.bool_], scope: Scope, id_: DocId, limit: int
) -> Neighborhood:
    """See :class:`adapters.ports.graph.NeighborhoodReader`. Reads all edges: blocks.

    :param visible: by position, whether the caller may see the document.
    """
    key = (scope.tenant, scope.environment, id_)
    position = segments.position(key)
    node = None if position is None else int(np.searchsorted(graph.positions, position))
    if position is None or node is None or node == len(graph.positions) or graph.positions[node] != position:
        return Neighborhood()
    offsets, targets = graph.adjacency.offsets, graph.adjacency.targets

    def ids(documents: npt.NDArray[np.int64]) -> list[DocId]:
        positions = graph.positions[documents]
        return sorted(map(segments.id, positions[visible[positions]].tolist()))

    # The edge back is missing where the links of a type are followed in one direction only.
    from_others = np.searchsorted(offsets, np.flatnonzero(targets == node), side="right") - 1
    joined = np.unique(np.concatenate((targets[offsets[node] : offsets[node + 1]], from_others)))
    linked = ids(joined[joined < len(graph.positions)])
    vocabulary = graph.scopes.get((scope.tenant, scope.environment), Vocabulary())
    names = []
    for name in entity_names(segments.record(position)):
        start = vocabulary.nodes.get(name)
        if start is not None and offsets[start + 1] - offsets[start] <= _MAX_MENTIONS:
            mentioning = ids(targets[offsets[start] : offsets[start + 1]].astype(np.int64))
            names.append(MentionedName(name, len(mentioning), mentioning[:limit]))
    return Neighborhood.of(linked[:limit], len(linked), names)
