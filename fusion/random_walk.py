"""Personalised PageRank on a small part of a large graph.

Page, Brin, Motwani, Winograd: "The PageRank Citation Ranking", 1999, section 6 (personalisation). The walk is
run on a capped neighbourhood of its seeds, so that its cost does not grow with the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusion.rank_fields import Floats, Ints

try:
    from fusion.walk_kernel import walk
except ImportError:  # the package was built without a C compiler
    from fusion.walk_numpy import walk

_EVERYWHERE = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A graph in compressed sparse rows: node ``i`` leads to ``targets[offsets[i]:offsets[i + 1]]``.

    ``offsets`` has one entry more than there are nodes. ``weights``, parallel to ``targets``, are positive, with a sum
    of at most 1 in each row; what is missing in it goes back to the seeds. The arrays may be mapped from files; nothing
    here writes to them.
    """

    offsets: Ints
    targets: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1


class WalkScratch:
    """Memory in which a walk numbers its nodes, reused by the next walk. Only one thread may use it at a time."""

    def __init__(self) -> None:
        self._index = np.full(0, -1, np.int32)

    def index_of(self, nodes: int) -> npt.NDArray[np.int32]:
        """An array with -1 for each node of a graph. A walk resets the elements that it has written to -1."""
        if len(self._index) != nodes:
            self._index = np.full(nodes, -1, np.int32)
        return self._index


@dataclass(frozen=True, slots=True)
class Walk:
    """A random walk of ``steps`` steps: over an edge with probability ``follow``, else back to a seed; among at most
    ``cap`` nodes within ``hops`` edges of the seeds. A node with more than ``fanout`` edges is reached but not
    passed through: an edge from a hub carries no information. For a seed the limit is ``seed_fanout``. If there
    are more nodes than ``cap``, the most visited remain; of those equally visited, the smallest."""

    steps: int = 5
    follow: float = 0.7
    hops: int = 2
    cap: int = 2_000
    fanout: int = 200
    seed_fanout: int = 4_000

    @classmethod
    def of_hops(cls, documents: int | None) -> Walk:
        """The walk for a maximum distance in documents from a name: two edges for each, and one to the first."""
        if documents is None:
            return cls()
        edges = 2 * documents + 1
        return cls(steps=max(cls().steps, edges), hops=edges)

    def __call__(
        self,
        graph: Adjacency,
        seeds: Ints,
        mass: npt.NDArray[np.float32],
        scratch: WalkScratch,
        allowed: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Ints, Floats]:
        """The nodes that the walk reaches, the seeds first, and the probability of each; they sum to 1.

        :param seeds: distinct nodes to start from and to return to.
        :param mass: parallel to ``seeds``, positive, of any sum.
        :param allowed: by node, whether the walk may reach it; everywhere if ``None``.
        """
        if len(seeds) == 0:
            return seeds, np.zeros(0)
        start = mass.astype(np.float64)
        index = scratch.index_of(len(graph))
        try:
            return walk(
                graph.offsets,
                graph.targets,
                graph.weights,
                seeds,
                start / start.sum(),
                index,
                _EVERYWHERE if allowed is None else allowed.view(np.uint8),
                self.steps,
                self.follow,
                self.hops,
                self.cap,
                self.fanout,
                self.seed_fanout,
            )
        except BaseException:
            index.fill(-1)
            raise
