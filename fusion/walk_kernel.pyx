# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The walk as loops over arrays: :class:`fusion.random_walk.Walk` without the cost of numpy's operations.

:mod:`fusion.walk_numpy` does the same operations on the same numbers in the same order, so the results are equal to the
last bit, compiled or not; a test compares them. docs/decisions/0020-compiled-walk.md has the
measurements.
"""

import numpy as np

from fusion.largest import top

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef int32_t UNSEEN = -1  # in the index; smaller values are of the ring that is being collected


def walk(
    const int64_t[::1] offsets,
    const int32_t[::1] targets,
    const float[::1] weights,
    const int64_t[::1] seeds,
    const double[::1] start,
    int32_t[::1] index,
    const uint8_t[::1] allowed,
    int steps,
    double follow,
    int hops,
    Py_ssize_t cap,
    int64_t fanout,
    int64_t seed_fanout,
):
    """Nodes, the seeds first, and the probability of each.

    :param start: parallel to ``seeds``, with a sum of 1.
    :param index: by node of the graph, -1 everywhere, before and after.
    :param allowed: by node, whether the walk may reach it; everywhere if empty.

    The other parameters are those of :class:`fusion.random_walk.Walk`.
    """
    cdef Py_ssize_t row, edge, first, count = len(seeds), seed_count = len(seeds)
    cdef int step
    cdef double lost
    node_array = np.empty(max(cap, seed_count), np.int64)
    cdef int64_t[::1] nodes = node_array
    for row in range(seed_count):
        nodes[row] = seeds[row]
        index[seeds[row]] = <int32_t>row
    mass = np.asarray(start)
    first = 0
    for step in range(hops):
        ring, mass = _ring(
            offsets, targets, weights, nodes[first:count], mass, index, allowed, fanout if step else seed_fanout
        )
        if len(ring) > cap - count:
            _mark(index, ring, UNSEEN, 0)
            best = np.sort(top(mass, ring, cap - count))
            ring, mass = ring[best], mass[best]
        node_array[count : count + len(ring)] = ring
        _mark(index, ring, <int32_t>count, 1)
        first = count
        count += len(ring)
    node_array = node_array[:count]
    edges = _inner_edges(offsets, targets, weights, node_array, seed_count, index, fanout, seed_fanout)
    _mark(index, node_array, UNSEEN, 0)
    cdef const int32_t[::1] rows = edges[0], columns = edges[1]
    cdef const float[::1] inner = edges[2]
    probability_array = np.zeros(count)
    cdef double[::1] probability = probability_array, restart = np.zeros(count), flow = np.zeros(count)
    for row in range(seed_count):
        restart[row] = probability[row] = start[row]
    for step in range(steps):
        for row in range(count):
            flow[row] = 0.0
        for edge in range(len(rows)):
            flow[columns[edge]] += inner[edge] * probability[rows[edge]]
        lost = 0.0
        for row in range(count):
            lost += flow[row]
        lost = 1.0 - lost
        for row in range(count):
            probability[row] = follow * (flow[row] + lost * restart[row]) + (1 - follow) * restart[row]
    return node_array, probability_array


cdef _ring(
    const int64_t[::1] offsets,
    const int32_t[::1] targets,
    const float[::1] weights,
    const int64_t[::1] nodes,
    const double[::1] mass,
    int32_t[::1] index,
    const uint8_t[::1] allowed,
    int64_t limit,
):
    """The new nodes around ``nodes`` in the order of first sight, and the mass that flows to each.

    In ``index`` they are marked with ``-2 - place in the ring``.
    """
    cdef Py_ssize_t row, found = 0, capacity = _edge_count(offsets, nodes, 0, limit, limit)
    cdef int64_t edge, target
    cdef int32_t mark
    cdef double flow
    ring_array, mass_array = np.empty(capacity, np.int64), np.empty(capacity)
    cdef int64_t[::1] ring = ring_array
    cdef double[::1] ring_mass = mass_array
    for row in range(len(nodes)):
        if offsets[nodes[row] + 1] - offsets[nodes[row]] > limit:
            continue
        for edge in range(offsets[nodes[row]], offsets[nodes[row] + 1]):
            target = targets[edge]
            mark = index[target]
            if mark > UNSEEN or (allowed.shape[0] and not allowed[target]):
                continue
            flow = weights[edge] * mass[row]
            if mark == UNSEEN:
                index[target] = <int32_t>(UNSEEN - 1 - found)
                ring[found] = target
                ring_mass[found] = flow
                found += 1
            else:
                ring_mass[UNSEEN - 1 - mark] += flow
    return ring_array[:found], mass_array[:found]


cdef _inner_edges(
    const int64_t[::1] offsets,
    const int32_t[::1] targets,
    const float[::1] weights,
    const int64_t[::1] nodes,
    Py_ssize_t seeds,
    const int32_t[::1] index,
    int64_t fanout,
    int64_t seed_fanout,
):
    """The edges among ``nodes``, with both ends as indices into it, and their weights."""
    cdef Py_ssize_t row, found = 0, capacity = _edge_count(offsets, nodes, seeds, seed_fanout, fanout)
    cdef int64_t edge
    cdef int32_t place
    row_array, column_array = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    weight_array = np.empty(capacity, np.float32)
    cdef int32_t[::1] rows = row_array, columns = column_array
    cdef float[::1] inner = weight_array
    for row in range(len(nodes)):
        if offsets[nodes[row] + 1] - offsets[nodes[row]] > (seed_fanout if row < seeds else fanout):
            continue
        for edge in range(offsets[nodes[row]], offsets[nodes[row] + 1]):
            place = index[targets[edge]]
            if place > UNSEEN:
                rows[found] = <int32_t>row
                columns[found] = place
                inner[found] = weights[edge]
                found += 1
    return row_array[:found], column_array[:found], weight_array[:found]


cdef Py_ssize_t _edge_count(
    const int64_t[::1] offsets, const int64_t[::1] nodes, Py_ssize_t seeds, int64_t seed_fanout, int64_t fanout
) noexcept:
    """Number of edges out of nodes that have no more than their limit. The first ``seeds`` of the nodes are seeds."""
    cdef Py_ssize_t row, count = 0
    cdef int64_t degree
    for row in range(nodes.shape[0]):
        degree = offsets[nodes[row] + 1] - offsets[nodes[row]]
        if degree <= (seed_fanout if row < seeds else fanout):
            count += degree
    return count


cdef void _mark(int32_t[::1] index, const int64_t[::1] nodes, int32_t first, int32_t step) noexcept:
    """Write ``first``, ``first + step``, … for the nodes."""
    cdef Py_ssize_t row
    for row in range(nodes.shape[0]):
        index[nodes[row]] = first + <int32_t>row * step
