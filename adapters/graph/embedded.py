"""The knowledge graph in this process: names and documents, walked from what the query names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from adapters.document import Scope
from adapters.embedded import Catalog, Library
from adapters.graph.centrality import CentralityFile
from adapters.graph.link import Linked, link, start
from adapters.graph.part import Graph, GraphPart, Vocabulary
from adapters.port import Query
from fusion import DocId, Ranking, Walk


class EmbeddedGraph:
    """The graph source of a library that keeps a :class:`GraphPart`; and what it knows of its documents."""

    def __init__(self, library: Library, part: GraphPart, centrality: CentralityFile | None = None) -> None:
        self._library = library
        self._part = part
        self._walk = Walk()
        self._centrality = centrality

    async def centralities(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, float]:
        """See :class:`adapters.port.Priors`."""
        if self._centrality is None:
            return {}
        catalog = self._library.current().catalog
        found = {}
        for id_ in ids:
            position = catalog.position((scope.tenant, scope.environment, id_))
            value = None if position is None else self._centrality.of(int(catalog.docnos[position]))
            if value is not None:
                found[id_] = value
        return found

    async def names(self, query: Query) -> bool:
        """See :class:`adapters.port.Priors`."""
        snapshot = self._library.current()
        if not snapshot.catalog.count:
            return False
        graph = snapshot.index(self._part)
        return bool(_linked(graph, query, _visible(graph, snapshot.catalog, query)).seeds)

    async def search(self, query: Query) -> Ranking:
        """Documents near the names in the query and near ``query.near``; the score is the walk's probability.

        That is in [0, 1]. Empty where there is nothing to start from.
        """
        snapshot = self._library.current()
        catalog = snapshot.catalog
        if not catalog.count:
            return Ranking("graph", (), ())
        graph = snapshot.index(self._part)
        visible = _visible(graph, catalog, query)
        linked = _linked(graph, query, visible)
        seeds, share = start(linked, _nodes(graph, catalog, query))
        nodes, mass = self._walk(graph.adjacency, seeds, share, visible)
        documents = nodes < len(graph.positions)
        positions, mass = graph.positions[nodes[documents]], mass[documents]
        wanted = catalog.mask(query.filter)
        if wanted.count < catalog.count:
            passing = wanted.flags[positions]
            positions, mass = positions[passing], mass[passing]
        best = np.lexsort((positions, -mass))[: query.depth]
        best = best[mass[best] > 0]
        return catalog.ranking("graph", positions[best].tolist(), mass[best].tolist(), linked.coverage)


def _linked(graph: Graph, query: Query, visible: npt.NDArray[np.bool_] | None) -> Linked:
    """The names in the query, as far as a document that the caller may know of mentions them."""
    known = graph.scopes.get((query.scope.tenant, query.scope.environment), Vocabulary())
    offsets, targets = graph.adjacency.offsets, graph.adjacency.targets

    def degree(node: int) -> int:
        start, end = int(offsets[node]), int(offsets[node + 1])
        return end - start if visible is None else int(visible[targets[start:end]].sum())

    return link(query.text, known.nodes, degree, known.frequency, known.documents)


def _nodes(graph: Graph, catalog: Catalog, query: Query) -> list[int]:
    """The documents that the query is known to be near to, as far as they are there, as nodes."""
    keys = ((query.scope.tenant, query.scope.environment, id_) for id_ in query.near)
    positions = [position for key in keys if (position := catalog.position(key)) is not None]
    return np.searchsorted(graph.positions, positions).tolist() if positions else []


def _visible(graph: Graph, catalog: Catalog, query: Query) -> npt.NDArray[np.bool_] | None:
    """By node, whether the caller may know of it; ``None`` if it may know of all documents."""
    mask = catalog.mask(query.access)
    if mask.count == catalog.count:
        return None
    return np.concatenate((mask.flags[graph.positions], np.ones(graph.names, np.bool_)))
