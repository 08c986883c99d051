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


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A graph in compressed sparse rows: node ``i`` leads to ``targets[offsets[i]:offsets[i + 1]]``.

    ``offsets`` has one entry more than there are nodes. ``weights``, parallel to ``targets``, sum to 1 in each
    row that is not empty. The arrays may be mapped from files; nothing here writes to them. For one thread at a time:
    walks share ``scratch``.
    """

    offsets: Ints
    targets: Ints
    weights: Floats
    scratch: npt.NDArray[np.uint32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scratch", np.empty(len(self.offsets) - 1, np.uint32))

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Walk:
    """How far and how long: ``steps`` of following an edge with probability ``follow`` (else back to a seed),
    among at most ``cap`` nodes within ``hops`` edges of the seeds. A node with more than ``fanout`` edges is
    walked to, not through: what leads everywhere says nothing."""

    steps: int = 5
    follow: float = 0.7
    hops: int = 2
    cap: int = 2_000
    fanout: int = 4_000

    def __call__(
        self, graph: Adjacency, seeds: Ints, mass: Floats, allowed: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Ints, Floats]:
        """Where the walk is found: nodes, up, and the probability of each; they sum to 1.

        :param seeds: distinct nodes to start from and to return to.
        :param mass: parallel to ``seeds``, positive, of any sum.
        :param allowed: by node, where the walk may set foot; everywhere if ``None``.
        """
        nodes: Ints = np.asarray(seeds, dtype=np.int64)
        if len(nodes) == 0:
            return nodes, np.zeros(0, np.float32)
        restart = np.asarray(mass, dtype=np.float32)
        nodes, restart = self._neighbourhood(graph, nodes, restart / restart.sum(), allowed)
        rows, columns, weights = self._inner_edges(graph, nodes)
        found = restart
        for _ in range(self.steps):
            flow = np.bincount(columns, weights[...] * found[rows], minlength=len(nodes)).astype(np.float32)
            lost = np.float32(1.0) - flow.sum()  # over edges that leave the neighbourhood, and dead ends
            found = self.follow * (flow + lost * restart) + (1 - self.follow) * restart
        return nodes, found

    def _neighbourhood(
        self, graph: Adjacency, nodes: Ints, restart: Floats, allowed: npt.NDArray[np.bool_] | None
    ) -> tuple[Ints, Floats]:
        """The seeds and what is near them, sorted by node, with the restart mass of each (0 if no seed)."""
        seeds, frontier, mass = nodes, nodes, restart
        for _ in range(self.hops):
            rows, targets, weights = self._edges(graph, frontier)
            reached, place = np.unique(targets, return_inverse=True)
            arrived = np.bincount(place, weights * mass[rows], minlength=len(reached))
            _, known = _places(nodes, reached, graph.scratch)
            new = ~known
            if allowed is not None:
                new &= allowed[reached]
            frontier, mass = reached[new], arrived[new].astype(np.float32)
            room = self.cap - len(nodes)
            if len(frontier) > room:  # the most visited stay; ties by node, so that the same walk is the same
                kept = np.sort(np.lexsort((frontier, -mass))[: max(room, 0)])
                frontier, mass = frontier[kept], mass[kept]
            nodes = np.concatenate((nodes, frontier))
        nodes = np.sort(nodes)
        spread = np.zeros(len(nodes), np.float32)
        spread[np.searchsorted(nodes, seeds)] = restart
        return nodes, spread

    def _edges(self, graph: Adjacency, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Every edge out of ``nodes``: index into ``nodes``, target, weight."""
        starts = graph.offsets[nodes].astype(np.int64)
        counts = graph.offsets[nodes + 1].astype(np.int64) - starts
        counts[counts > self.fanout] = 0
        ends = np.cumsum(counts)
        rows = np.repeat(np.arange(len(nodes)), counts)
        edges = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
        return rows, graph.targets[edges], graph.weights[edges]

    def _inner_edges(self, graph: Adjacency, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """The edges that stay among ``nodes`` (sorted), with both ends as indices into it."""
        rows, targets, weights = self._edges(graph, nodes)
        columns, inner = _places(nodes, targets, graph.scratch)
        return rows[inner], columns[inner], weights[inner]


def _places(nodes: Ints, wanted: Ints, table: npt.NDArray[np.uint32]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Where in ``nodes`` each of ``wanted`` stands, and whether it does; all are below the length of ``table``.

    A sparse set (Briggs, Torczon 1993): the table is not cleared first, so what is read from it is only believed
    when ``nodes`` confirms it. Cheaper than a binary search, and its cost does not grow with the graph.
    """
    table[nodes] = np.arange(len(nodes), dtype=np.uint32)
    places = np.minimum(table[wanted], len(nodes) - 1)
    return places, nodes[places] == wanted
