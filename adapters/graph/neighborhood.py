"""What is around a document in the embedded graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from adapters.engine.segment_set import SegmentSet
from adapters.graph.component import Graph, Vocabulary
from adapters.graph.edges import entity_names
from adapters.model.document import Scope
from adapters.ports.graph import MAX_EXAMPLES, MentionedName, Neighborhood
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

    def seen(documents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        positions: npt.NDArray[np.int64] = graph.positions[documents]
        return positions[visible[positions]]

    # The edge back is missing where the links of a type are followed in one direction only.
    from_others = np.searchsorted(offsets, np.flatnonzero(targets == node), side="right") - 1
    joined = np.unique(np.concatenate((targets[offsets[node] : offsets[node + 1]], from_others)))
    linked = sorted(map(segments.id, seen(joined[joined < len(graph.positions)]).tolist()))
    vocabulary = graph.scopes.get((scope.tenant, scope.environment), Vocabulary())
    nodes = {name: each for name in entity_names(segments.record(position)) if (each := vocabulary.nodes.get(name))}
    degrees = {name: int(offsets[each + 1] - offsets[each]) for name, each in nodes.items()}
    rarest = sorted((name for name in nodes if degrees[name] <= _MAX_MENTIONS), key=lambda name: (degrees[name], name))
    names = []
    for name in rarest[:limit]:
        mentioning = seen(targets[offsets[nodes[name]] : offsets[nodes[name] + 1]].astype(np.int64))
        examples = sorted(map(segments.id, mentioning[:MAX_EXAMPLES].tolist()))
        names.append(MentionedName(name, len(mentioning), examples))
    return Neighborhood.of(linked[:limit], len(linked), names, len(rarest))
