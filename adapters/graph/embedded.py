"""The knowledge graph in this process: names and documents, walked from the names in the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from adapters.document import Scope
from adapters.embedded import Catalog, Library
from adapters.graph.centrality import CentralityFile
from adapters.graph.link import link
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

    async def search(self, query: Query) -> Ranking:
        """Documents near the names in the query; the score is the walk's probability, in [0, 1].

        Empty where the query names nothing that the graph holds.
        """
        snapshot = self._library.current()
        catalog = snapshot.catalog
        if not catalog.count:
            return Ranking("graph", (), ())
        graph = snapshot.index(self._part)
        known = graph.scopes.get((query.scope.tenant, query.scope.environment), Vocabulary())
        linked = link(query.text, known.nodes, known.frequency, known.documents)
        if not linked.seeds:
            return Ranking("graph", (), ())
        nodes, mass = self._walk(
            graph.adjacency,
            np.fromiter(linked.seeds, np.int64, len(linked.seeds)),
            np.fromiter(linked.seeds.values(), np.float32, len(linked.seeds)),
            _visible(graph, catalog, query),
        )
        documents = nodes < len(graph.positions)
        positions, mass = graph.positions[nodes[documents]], mass[documents]
        wanted = catalog.mask(query.filter)
        if wanted.count < catalog.count:
            passing = wanted.flags[positions]
            positions, mass = positions[passing], mass[passing]
        best = np.lexsort((positions, -mass))[: query.depth]
        best = best[mass[best] > 0]
        return Ranking("graph", catalog.ids(positions[best].tolist()), tuple(mass[best].tolist()))


def _visible(graph: Graph, catalog: Catalog, query: Query) -> npt.NDArray[np.bool_] | None:
    """By node, whether the caller may know of it; ``None`` if it may know of all documents."""
    mask = catalog.mask(query.access)
    if mask.count == catalog.count:
        return None
    return np.concatenate((mask.flags[graph.positions], np.ones(graph.names, np.bool_)))
