"""The walk by operations of numpy, for installations without a compiled one: see :mod:`fusion.walk_kernel`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusion.largest import top
from fusion.rank_fields import Floats, Ints

_Index = npt.NDArray[np.int32]
_Targets = npt.NDArray[np.int32]
_Weights = npt.NDArray[np.float32]


def walk(  # noqa: PLR0917  # the arguments of the compiled function
    offsets: Ints,
    targets: _Targets,
    weights: _Weights,
    seeds: Ints,
    start: Floats,
    index: _Index,
    allowed: npt.NDArray[np.uint8],
    steps: int,
    follow: float,
    hops: int,
    cap: int,
    fanout: int,
    seed_fanout: int,
) -> tuple[Ints, Floats]:
    """See :func:`fusion.walk_kernel.walk`."""
    nodes = frontier = seeds
    mass = start
    index[seeds] = np.arange(len(seeds))
    for hop in range(hops):
        rows, edges = _edges(offsets, frontier, 0 if hop else len(seeds), seed_fanout, fanout)
        reached = targets.take(edges)
        new = index.take(reached) < 0
        if len(allowed):
            new &= allowed.take(reached) > 0
        new_edges = np.flatnonzero(new)
        flow = weights.take(edges.take(new_edges)) * mass.take(rows.take(new_edges))
        frontier, mass = _sum_by_node(reached.take(new_edges), flow, index)
        if len(frontier) > cap - len(nodes):
            index[frontier] = -1
            best = np.sort(top(mass, frontier, cap - len(nodes)))
            frontier, mass = frontier.take(best), mass.take(best)
        index[frontier] = np.arange(len(nodes), len(nodes) + len(frontier))
        nodes = np.concatenate((nodes, frontier))
    rows, edges = _edges(offsets, nodes, len(seeds), seed_fanout, fanout)
    columns = index.take(targets.take(edges))
    inner = np.flatnonzero(columns >= 0)  # few: most edges of nodes far from the seeds lead farther away
    rows, columns, inner_weights = rows.take(inner), columns.take(inner), weights.take(edges.take(inner))
    index[nodes] = -1
    restart = np.zeros(len(nodes))
    restart[: len(start)] = start
    probability = restart
    for _ in range(steps):
        to_node = np.bincount(columns, inner_weights * probability.take(rows), minlength=len(nodes))
        lost = 1.0 - to_node.cumsum()[-1]  # over edges that leave the neighbourhood, and dead ends
        probability = follow * (to_node + lost * restart) + (1 - follow) * restart
    return nodes, probability


def _edges(offsets: Ints, nodes: Ints, seeds: int, seed_fanout: int, fanout: int) -> tuple[Ints, Ints]:
    """Every edge out of ``nodes``: the index of its node in ``nodes``, and its index in the graph.

    The first ``seeds`` of the nodes are seeds.
    """
    starts = offsets.take(nodes)
    counts = offsets.take(nodes + 1) - starts
    for group, limit in ((counts[:seeds], seed_fanout), (counts[seeds:], fanout)):
        group[group > limit] = 0
    rows = np.repeat(np.arange(len(nodes)), counts)
    return rows, np.arange(len(rows)) + (starts + counts - np.cumsum(counts)).take(rows)


def _sum_by_node(nodes: _Targets, values: Floats, index: _Index) -> tuple[Ints, Floats]:
    """Each node once, in the order of first sight, and the sum of its values.

    Duplicates are found without sorting: by writing to ``index`` and reading it back.
    """
    order = np.arange(len(nodes))
    index[nodes[::-1]] = order[::-1]  # of a node that occurs twice, the first
    first = np.flatnonzero(index.take(nodes) == order)
    distinct = nodes.take(first).astype(np.int64)
    index[distinct] = np.arange(len(distinct))
    sums = np.bincount(index.take(nodes), values, minlength=len(distinct))
    return distinct, sums.astype(np.float64, copy=False)
