"""Personalised PageRank on a small part of a large graph.

Page, Brin, Motwani, Winograd: "The PageRank Citation Ranking", 1999, section 6 (personalisation). The walk is
run on a capped neighbourhood of its seeds, so that its cost does not grow with the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float32]
Masses = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A graph in compressed sparse rows: node ``i`` leads to ``targets[offsets[i]:offsets[i + 1]]``.

    ``offsets`` has one entry more than there are nodes. ``weights``, parallel to ``targets``, sum to 1 in each
    row that is not empty. The arrays may be mapped from files; nothing here writes to them. For one thread at a time:
    walks share ``places``, where a walk numbers the nodes that it finds, and leaves -1 for every node behind it.
    """

    offsets: Ints
    targets: Ints
    weights: Floats
    places: npt.NDArray[np.int32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", np.full(len(self), -1, np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Walk:
    """How far and how long: ``steps`` of following an edge with probability ``follow`` (else back to a seed),
    among at most ``cap`` nodes within ``hops`` edges of the seeds. A node with more than ``fanout`` edges is
    walked to, not through: what leads everywhere says nothing. Of a seed it takes more than ``seed_fanout``."""

    steps: int = 5
    follow: float = 0.7
    hops: int = 2
    cap: int = 2_000
    fanout: int = 200
    seed_fanout: int = 4_000

    def __call__(
        self, graph: Adjacency, seeds: Ints, mass: Floats, allowed: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Ints, Masses]:
        """Where the walk is found: nodes, the seeds first, and the probability of each; they sum to 1.

        :param seeds: distinct nodes to start from and to return to.
        :param mass: parallel to ``seeds``, positive, of any sum.
        :param allowed: by node, where the walk may set foot; everywhere if ``None``.
        """
        nodes: Ints = np.asarray(seeds, dtype=np.int64)
        if len(nodes) == 0:
            return nodes, np.zeros(0)
        share = np.asarray(mass, np.float64)
        share = share / share.sum()
        try:
            nodes = self._neighbourhood(graph, nodes, share, allowed)
            rows, columns, weights = self._inner_edges(graph, nodes, len(share))
        except BaseException:
            graph.places.fill(-1)
            raise
        graph.places[nodes] = -1
        restart = np.zeros(len(nodes))
        restart[: len(share)] = share
        found = restart
        for _ in range(self.steps):
            flow = np.bincount(columns, weights * found.take(rows), minlength=len(nodes))
            lost = 1.0 - flow.sum()  # over edges that leave the neighbourhood, and dead ends
            found = self.follow * (flow + lost * restart) + (1 - self.follow) * restart
        return nodes, found

    def _neighbourhood(
        self, graph: Adjacency, seeds: Ints, mass: Masses, allowed: npt.NDArray[np.bool_] | None
    ) -> Ints:
        """The seeds and what is near them, the nearest first; numbered in ``graph.places``."""
        nodes = frontier = seeds
        leading = len(seeds)
        graph.places[seeds] = np.arange(len(seeds))
        for _ in range(self.hops):
            rows, edges = self._edges(graph, frontier, leading)
            leading = 0
            targets = graph.targets.take(edges)
            new = graph.places.take(targets) < 0
            if allowed is not None:
                new &= allowed.take(targets)
            fresh = np.flatnonzero(new)
            flow = graph.weights.take(edges.take(fresh)) * mass.take(rows.take(fresh))
            frontier, mass = _sum_by_node(targets.take(fresh), flow, graph.places)
            room = self.cap - len(nodes)
            if len(frontier) > room:  # the most visited stay; ties by node, so that the same walk is the same
                graph.places[frontier] = -1
                kept = np.lexsort((frontier, -mass))[: max(room, 0)]
                frontier, mass = frontier.take(kept), mass.take(kept)
            graph.places[frontier] = np.arange(len(nodes), len(nodes) + len(frontier))
            nodes = np.concatenate((nodes, frontier))
        return nodes

    def _edges(self, graph: Adjacency, nodes: Ints, seeds: int) -> tuple[Ints, Ints]:
        """Every edge out of ``nodes``: whose it is, as an index into ``nodes``, and where it stands in the graph.

        The first ``seeds`` of the nodes are seeds.
        """
        starts = graph.offsets.take(nodes)
        counts = graph.offsets.take(nodes + 1) - starts
        for part, most in ((counts[:seeds], self.seed_fanout), (counts[seeds:], self.fanout)):
            part[part > most] = 0
        rows = np.repeat(np.arange(len(nodes)), counts)
        return rows, np.arange(len(rows)) + (starts + counts - np.cumsum(counts)).take(rows)

    def _inner_edges(self, graph: Adjacency, nodes: Ints, seeds: int) -> tuple[Ints, Ints, Floats]:
        """The edges that stay among ``nodes``, with both ends as indices into it."""
        rows, edges = self._edges(graph, nodes, seeds)
        columns = graph.places.take(graph.targets.take(edges))
        inner = np.flatnonzero(columns >= 0)  # few: most edges of what is far from the seeds lead farther away
        return rows.take(inner), columns.take(inner), graph.weights.take(edges.take(inner))


def _sum_by_node(nodes: Ints, values: Masses, places: npt.NDArray[np.int32]) -> tuple[Ints, Masses]:
    """Each node once, and the sum of its values. By writing into ``places`` and reading what stayed: no sorting."""
    order = np.arange(len(nodes))
    places[nodes] = order  # of a node that stands twice, the last
    last = np.flatnonzero(places.take(nodes) == order)
    distinct = nodes.take(last)
    places[distinct] = np.arange(len(distinct))
    sums = np.bincount(places.take(nodes), values, minlength=len(distinct))
    return distinct, sums.astype(np.float64, copy=False)
