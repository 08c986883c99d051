"""Personalised PageRank on a small part of a large graph.

Page, Brin, Motwani, Winograd: "The PageRank Citation Ranking", 1999, section 6 (personalisation). The walk is
run on a capped neighbourhood of its seeds, so that its cost does not grow with the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Nodes = npt.NDArray[np.integer]
Weights = npt.NDArray[np.float32]
Masses = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A graph in compressed sparse rows: node ``i`` leads to ``targets[offsets[i]:offsets[i + 1]]``.

    ``offsets`` has one entry more than there are nodes. ``weights``, parallel to ``targets``, sum to 1 in each row that
    is not empty. The arrays may be mapped from files; nothing here writes to them.
    """

    offsets: Nodes
    targets: Nodes
    weights: Weights

    def __len__(self) -> int:
        return len(self.offsets) - 1


class WalkScratch:
    """Memory that a walk numbers its nodes in, reused by the next walk. For one thread at a time."""

    def __init__(self) -> None:
        self._index = np.full(0, -1, np.int32)

    def index_of(self, nodes: int) -> npt.NDArray[np.int32]:
        """By node of a graph, -1 everywhere. A walk sets what it wrote back to -1."""
        if len(self._index) != nodes:
            self._index = np.full(nodes, -1, np.int32)
        return self._index


@dataclass(frozen=True, slots=True)
class Walk:
    """How far and how long: ``steps`` of following an edge with probability ``follow`` (else back to a seed), among at
    most ``cap`` nodes within ``hops`` edges of the seeds. A node with more than ``fanout`` edges is reached but not
    passed through: an edge from a hub carries no information. For a seed the limit is ``seed_fanout``."""

    steps: int = 5
    follow: float = 0.7
    hops: int = 2
    cap: int = 2_000
    fanout: int = 200
    seed_fanout: int = 4_000

    def __call__(
        self,
        graph: Adjacency,
        seeds: Nodes,
        mass: Weights,
        scratch: WalkScratch,
        allowed: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Nodes, Masses]:
        """The nodes that the walk reaches, the seeds first, and the probability of each; they sum to 1.

        :param seeds: distinct nodes to start from and to return to.
        :param mass: parallel to ``seeds``, positive, of any sum.
        :param allowed: by node, whether the walk may reach it; everywhere if ``None``.
        """
        nodes: Nodes = np.asarray(seeds, dtype=np.int64)
        if len(nodes) == 0:
            return nodes, np.zeros(0)
        start = np.asarray(mass, np.float64)
        start = start / start.sum()
        index = scratch.index_of(len(graph))
        try:
            nodes = self._neighbourhood(graph, nodes, start, index, allowed)
            rows, columns, weights = self._inner_edges(graph, nodes, len(start), index)
        except BaseException:
            index.fill(-1)
            raise
        index[nodes] = -1
        restart = np.zeros(len(nodes))
        restart[: len(start)] = start
        probability = restart
        for _ in range(self.steps):
            flow = np.bincount(columns, weights * probability.take(rows), minlength=len(nodes))
            lost = 1.0 - flow.sum()  # over edges that leave the neighbourhood, and dead ends
            probability = self.follow * (flow + lost * restart) + (1 - self.follow) * restart
        return nodes, probability

    def _neighbourhood(
        self,
        graph: Adjacency,
        seeds: Nodes,
        mass: Masses,
        index: npt.NDArray[np.int32],
        allowed: npt.NDArray[np.bool_] | None,
    ) -> Nodes:
        """The seeds and the nodes around them, the nearest first; numbered in ``index``."""
        nodes = frontier = seeds
        leading = len(seeds)
        index[seeds] = np.arange(len(seeds))
        for _ in range(self.hops):
            rows, edges = self._edges(graph, frontier, leading)
            leading = 0
            targets = graph.targets.take(edges)
            new = index.take(targets) < 0
            if allowed is not None:
                new &= allowed.take(targets)
            new_targets = np.flatnonzero(new)
            flow = graph.weights.take(edges.take(new_targets)) * mass.take(rows.take(new_targets))
            frontier, mass = _sum_by_node(targets.take(new_targets), flow, index)
            room = self.cap - len(nodes)
            if len(frontier) > room:  # the most visited stay; ties by node, so that the same walk is the same
                index[frontier] = -1
                best = np.lexsort((frontier, -mass))[: max(room, 0)]
                frontier, mass = frontier.take(best), mass.take(best)
            index[frontier] = np.arange(len(nodes), len(nodes) + len(frontier))
            nodes = np.concatenate((nodes, frontier))
        return nodes

    def _edges(self, graph: Adjacency, nodes: Nodes, seeds: int) -> tuple[Nodes, Nodes]:
        """Every edge out of ``nodes``: the index of its node in ``nodes``, and its index in the graph.

        The first ``seeds`` of the nodes are seeds.
        """
        starts = graph.offsets.take(nodes)
        counts = graph.offsets.take(nodes + 1) - starts
        for group, limit in ((counts[:seeds], self.seed_fanout), (counts[seeds:], self.fanout)):
            group[group > limit] = 0
        rows = np.repeat(np.arange(len(nodes)), counts)
        return rows, np.arange(len(rows)) + (starts + counts - np.cumsum(counts)).take(rows)

    def _inner_edges(
        self, graph: Adjacency, nodes: Nodes, seeds: int, index: npt.NDArray[np.int32]
    ) -> tuple[Nodes, Nodes, Weights]:
        """The edges among ``nodes``, with both ends as indices into it."""
        rows, edges = self._edges(graph, nodes, seeds)
        columns = index.take(graph.targets.take(edges))
        inner = np.flatnonzero(columns >= 0)  # few: most edges of nodes far from the seeds lead farther away
        return rows.take(inner), columns.take(inner), graph.weights.take(edges.take(inner))


def _sum_by_node(nodes: Nodes, values: Masses, index: npt.NDArray[np.int32]) -> tuple[Nodes, Masses]:
    """Each node once, and the sum of its values. By writing into ``index`` and reading what stayed: no sorting."""
    order = np.arange(len(nodes))
    index[nodes] = order  # of a node that occurs twice, the last
    last = np.flatnonzero(index.take(nodes) == order)
    distinct = nodes.take(last)
    index[distinct] = np.arange(len(distinct))
    sums = np.bincount(index.take(nodes), values, minlength=len(distinct))
    return distinct, sums.astype(np.float64, copy=False)
