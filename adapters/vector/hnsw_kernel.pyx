# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# distutils: language = c++
"""The search of an HNSW graph in the arrays of faiss: see :mod:`adapters.vector.hnsw`.

Malkov, Yashunin: "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small World
graphs", IEEE TPAMI 42(4), 2020, algorithms 2 and 5. A search waits for memory most of the time: each vector that it
compares is somewhere else. So the vectors of a node's neighbours are requested before they are compared.
"""

import numpy as np

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.queue cimport priority_queue
from libcpp.vector cimport vector

cdef extern from *:
    """
    #include <cstddef>
    #include <cstdint>

    #if !defined(__x86_64__) || !defined(__GLIBC__) || !defined(__GNUC__) || defined(__clang__)
    #define BY_PROCESSOR
    #elif __GNUC__ < 12
    #define BY_PROCESSOR __attribute__((target_clones("default", "avx2")))
    #else  // v4: with AVX-512
    #define BY_PROCESSOR __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
    #endif

    static const int64_t ROWS = (int64_t)1 << 32;  // more than there can be

    // Every cache line of some bytes, which may begin anywhere in the first one.
    static inline void prefetch(const void* address, ptrdiff_t bytes) {
    #if defined(__GNUC__)
        const uintptr_t line = 64, start = (uintptr_t)address;
        for (uintptr_t at = start & ~(line - 1); at < start + bytes; at += line) __builtin_prefetch((const void*)at);
    #endif
    }

    // The score of each of some rows. Of integers, so it is the same on every processor.
    BY_PROCESSOR static void compare(
        const int16_t* query, const uint8_t* codes, ptrdiff_t dimension, const int32_t* rows, int count, int32_t* scores
    ) {
        const int ahead = 16;
        for (int at = 0; at < count && at < ahead; at++) prefetch(codes + rows[at] * dimension, dimension);
        for (int at = 0; at < count; at++) {
            if (at + ahead < count) prefetch(codes + rows[at + ahead] * dimension, dimension);
            const uint8_t* code = codes + rows[at] * dimension;
            int32_t sum = 0;
            for (ptrdiff_t column = 0; column < dimension; column++) sum += int32_t(query[column]) * code[column];
            scores[at] = sum;
        }
    }
    """
    const int64_t ROWS
    void prefetch(const void* address, Py_ssize_t bytes) nogil
    void compare(
        const int16_t* query,
        const uint8_t* codes,
        Py_ssize_t dimension,
        const int32_t* rows,
        int count,
        int32_t* scores,
    ) nogil


cdef inline int64_t _scored(int32_t score, int32_t row) noexcept nogil:
    """Ordered by score, then by row."""
    return score * ROWS + row


cdef inline int32_t _row(int64_t scored) noexcept nogil:
    return <int32_t>(scored & (ROWS - 1))


def nearest(
    const int16_t[::1] query,
    const uint8_t[::1] codes,
    const int32_t[::1] neighbours,
    const uint64_t[::1] offsets,
    const int32_t[::1] level_starts,
    int32_t entry,
    int top_level,
    const uint8_t[::1] allowed,
    Py_ssize_t count,
    Py_ssize_t width,
):
    """The rows with the highest scores among those that a search compares, in no order.

    :param query: the sum of its products with the code of a row is the row's score. It must fit into 32 bits.
    :param codes: of all rows, one after the other.
    :param neighbours: of all rows; -1 after the last one if a row has fewer than it may have.
    :param offsets: by row, where its neighbours begin, and where the last row's end.
    :param level_starts: by level, how many neighbours of a row come before those of this level.
    :param entry: the row at which a search begins, on the level ``top_level``.
    :param allowed: by row, whether it may be a result; all may be if it is empty.
    :param count: of results.
    :param width: number of candidates (``ef``), at least ``count``. Only rows that may be results count, so a search
        goes on until it has found so many of them, however few are near the query.
    """
    cdef Py_ssize_t dimension = query.shape[0], start, size, found = 0
    cdef int level, at, total
    cdef int32_t row = entry, other, best
    cdef int64_t scored
    cdef cbool moved, everything = allowed.shape[0] == 0
    cdef vector[cbool] visited
    cdef vector[int32_t] rows, scores
    cdef priority_queue[int64_t] candidates
    # The worst is first: what is in it has its sign changed.
    cdef priority_queue[int64_t] closest
    result_array = np.empty(count, np.int64)
    cdef int64_t[::1] result = result_array
    with nogil:
        visited.resize(offsets.shape[0] - 1)
        rows.resize(level_starts[top_level + 1])
        scores.resize(level_starts[top_level + 1])
        compare(&query[0], &codes[0], dimension, &row, 1, &best)
        for level in range(top_level, 0, -1):
            size = level_starts[level + 1] - level_starts[level]
            moved = True
            while moved:
                moved, total = False, 0
                start = <Py_ssize_t>offsets[row] + level_starts[level]
                while total < size and neighbours[start + total] >= 0:
                    rows[total] = neighbours[start + total]
                    total += 1
                compare(&query[0], &codes[0], dimension, rows.data(), total, scores.data())
                for at in range(total):
                    if scores[at] > best:
                        best, row, moved = scores[at], rows[at], True
        size = level_starts[1]
        rows[0], scores[0], total = row, best, 1
        visited[row] = True
        while True:
            for at in range(total):
                scored = _scored(scores[at], rows[at])
                if <Py_ssize_t>closest.size() < width or scored > -closest.top():
                    start = <Py_ssize_t>offsets[rows[at]]
                    prefetch(&neighbours[start], size * 4)
                    candidates.push(scored)
                    if everything or allowed[rows[at]]:
                        closest.push(-scored)
                        if <Py_ssize_t>closest.size() > width:
                            closest.pop()
            if candidates.empty() or (<Py_ssize_t>closest.size() == width and candidates.top() < -closest.top()):
                break
            start = <Py_ssize_t>offsets[_row(candidates.top())]
            candidates.pop()
            total = 0
            for at in range(size):
                other = neighbours[start + at]
                if other < 0:
                    break
                if not visited[other]:
                    visited[other] = True
                    prefetch(&offsets[other], 1)
                    rows[total] = other
                    total += 1
            compare(&query[0], &codes[0], dimension, rows.data(), total, scores.data())
        while <Py_ssize_t>closest.size() > count:
            closest.pop()
        while not closest.empty():
            result[found] = _row(-closest.top())
            found += 1
            closest.pop()
    return result_array[:found]
