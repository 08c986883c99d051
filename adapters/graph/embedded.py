"""The knowledge graph in this process: documents and names of entities, walked from the names in a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio.to_thread
import numpy as np
import numpy.typing as npt

from adapters.engine.index import EmbeddedIndex, pinned_view, snapshot_view
from adapters.engine.segment_set import SegmentSet
from adapters.engine.view import IndexView
from adapters.graph.centrality import CentralityFile
from adapters.graph.component import Graph, GraphComponent, Vocabulary
from adapters.graph.entity_linking import LinkedEntities, Mentions, link_entities, walk_seeds
from adapters.graph.neighborhood import find_neighborhood
from adapters.model.document import Scope
from adapters.model.filter import Filter, clearance_of
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.model.sources import GRAPH
from adapters.ports.graph import LinkStrength, Neighborhood
from adapters.ports.retriever import SourceQuery
from adapters.ports.snapshot import Snapshot
from fusion.columns import Ranking
from fusion.largest import top
from fusion.random_walk import Walk, WalkScratch
from fusion.values import DocId


class EmbeddedGraph:
    """The graph source of an embedded index with a :class:`GraphComponent`.

    It is also an :class:`adapters.ports.EntityLookup`, a :class:`adapters.ports.CentralityReader`, a
    :class:`adapters.ports.LinkStrengthReader` and a :class:`adapters.ports.graph.NeighborhoodReader`.

    :param centrality: the precomputed centralities; no document has one if ``None``.
    """

    def __init__(
        self, index: EmbeddedIndex, component: GraphComponent, centrality: CentralityFile | None = None
    ) -> None:
        self._index = index
        self._component = component
        self._centrality = centrality
        self._scratch = WalkScratch()

    async def search(self, query: SourceQuery) -> Ranking:
        """See :class:`adapters.ports.Retriever`."""
        return self.search_now(query)

    def search_now(self, query: SourceQuery) -> Ranking:
        """Documents that a walk reaches from the names in the query and from its seeds. Ties by position.

        The score is the probability of the walk, in (0, 1]. Without a name and a seed the ranking is empty.
        """
        view = pinned_view(self._index, query)
        segments = view.segments
        if (graph := self._visible_graph(view, query.access)) is None:
            return Ranking.empty(GRAPH.name)
        visible = _visible_nodes(graph, segments, query)
        entities = _linked_entities(graph, query, visible)
        seeds, seed_mass = walk_seeds(entities, _seed_nodes(graph, segments, query, visible))
        nodes, mass = Walk.of_hops(query.hops)(graph.adjacency, seeds, seed_mass, self._scratch, visible)
        documents = np.flatnonzero((nodes < len(graph.positions)) & (mass > 0))
        positions, mass = graph.positions.take(nodes.take(documents)), mass.take(documents)
        mask = segments.mask(query.filter)
        if mask.count < segments.count:
            passing = mask.flags[positions]
            positions, mass = positions[passing], mass[passing]
        best = top(mass, positions, query.depth)
        return Ranking.of_docs(GRAPH.name, positions.take(best), mass.take(best), segments, entities.entity_coverage)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """See :class:`adapters.ports.EntityLookup`."""
        view = pinned_view(self._index, query)
        if (graph := self._visible_graph(view, query.access)) is None:
            return False
        return bool(_linked_entities(graph, query, _visible_nodes(graph, view.segments, query)).seeds)

    async def link_strengths(self, scope: Scope) -> Sequence[LinkStrength]:
        """See :class:`adapters.ports.LinkStrengthReader`."""
        view = self._index.current()
        graph = view.component(self._component).of(HIGHEST_CLEARANCE) if view.segments.count else None
        return graph.strengths.get((scope.tenant, scope.environment), ()) if graph else ()

    async def neighborhood(self, scope: Scope, id_: DocId, access: Filter, limit: int) -> Neighborhood:
        """See :class:`adapters.ports.graph.NeighborhoodReader`."""
        view = self._index.current()
        if (graph := self._visible_graph(view, access)) is None:
            return Neighborhood()
        visible = view.segments.mask(access).flags
        return await anyio.to_thread.run_sync(find_neighborhood, graph, view.segments, visible, scope, id_, limit)

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[DocId],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[DocId, float]:
        """See :class:`adapters.ports.CentralityReader`."""
        if self._centrality is None:
            return {}
        segments = snapshot_view(self._index, snapshot).segments
        centralities = {}
        for id_ in ids:
            position = segments.position((scope.tenant, scope.environment, id_))
            value = None if position is None else self._centrality.of(int(segments.docnos[position]), clearance)
            if value is not None:
                centralities[id_] = value
        return centralities

    def _visible_graph(self, view: IndexView, access: Filter) -> Graph | None:
        """The graph of the documents that the caller may see; ``None`` if there are none."""
        return view.component(self._component).of(clearance_of(access)) if view.segments.count else None


def _linked_entities(graph: Graph, query: SourceQuery, visible: npt.NDArray[np.bool_] | None) -> LinkedEntities:
    """The names in the query that at least one visible document mentions."""
    vocabulary = graph.scopes.get((query.scope.tenant, query.scope.environment), Vocabulary())
    offsets, targets = graph.adjacency.offsets, graph.adjacency.targets

    def mentions(node: int) -> Mentions:
        start, end = int(offsets[node]), int(offsets[node + 1])
        count = end - start if visible is None else int(visible[targets[start:end]].sum())
        return Mentions(count, node in vocabulary.listed)

    return link_entities(query.text, vocabulary.nodes, mentions, vocabulary.counts, vocabulary.documents)


def _seed_nodes(
    graph: Graph, segments: SegmentSet, query: SourceQuery, visible: npt.NDArray[np.bool_] | None
) -> list[int]:
    """The nodes of the query's seeds that exist and are visible, in their order."""
    if query.seeds is None:
        return []
    nodes = segments.positions_of(query.scope, query.seeds)
    if not len(nodes) or not len(graph.positions):
        return []
    if len(graph.positions) < len(segments):  # otherwise every position is a node
        found = np.searchsorted(graph.positions, nodes)
        found[found == len(graph.positions)] = 0
        nodes = found[graph.positions[found] == nodes]
    known: list[int] = (nodes if visible is None else nodes[visible[nodes]]).tolist()
    return known


def _visible_nodes(graph: Graph, segments: SegmentSet, query: SourceQuery) -> npt.NDArray[np.bool_] | None:
    """Returns for each node whether a walk may visit it: no deleted document, and none that the principal may not see.

    :returns: ``None`` if all nodes may be visited.
    """
    mask = segments.mask(query.access)
    if mask.count == len(graph.positions):
        return None
    return np.concatenate((mask.flags[graph.positions], np.ones(graph.name_count, np.bool_)))
