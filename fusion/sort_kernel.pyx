# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# distutils: language = c++
"""The functions of :mod:`fusion.sort` without the cost of numpy's operations."""

import numpy as np

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int64_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

cdef extern from *:
    """
    #include <cstdint>

    struct ByValue {
        double value;
        int64_t tie, index;

        bool operator<(const ByValue& other) const {
            return value > other.value || (value == other.value && tie < other.tie);
        }
    };

    struct ByNumber {
        int64_t number, index;

        bool operator<(const ByNumber& other) const { return number < other.number; }
    };
    """
    cdef cppclass ByValue:
        double value
        int64_t tie, index

    cdef cppclass ByNumber:
        int64_t number, index


def descending(const double[::1] values, const int64_t[::1] ties):
    """See :func:`fusion.sort.descending_by_numpy`."""
    cdef Py_ssize_t row, count = values.shape[0]
    cdef vector[ByValue] sorted_values
    order_array = np.empty(count, np.int64)
    cdef int64_t[::1] order = order_array
    sorted_values.resize(count)
    for row in range(count):
        # NaN, which compares with nothing, would break the sort.
        sorted_values[row].value = -INFINITY if isnan(values[row]) else values[row]
        sorted_values[row].tie = ties[row]
        sorted_values[row].index = row
    sort(sorted_values.begin(), sorted_values.end())
    for row in range(count):
        order[row] = sorted_values[row].index
    return order_array


def tied(const int64_t[::1] order, const double[::1] values, const int64_t[::1] ties):
    """See :func:`fusion.sort.tied_by_numpy`."""
    cdef Py_ssize_t row, count = order.shape[0], found = 0
    cdef int64_t group = 0
    cdef bint as_before = False, as_after
    indices_array, groups_array = np.empty(count, np.int64), np.empty(count, np.int64)
    cdef int64_t[::1] indices = indices_array, groups = groups_array
    for row in range(count):
        as_after = (
            row + 1 < count
            and values[order[row]] == values[order[row + 1]]
            and ties[order[row]] == ties[order[row + 1]]
        )
        group += not as_before
        if as_before or as_after:
            indices[found] = row
            groups[found] = group
            found += 1
        as_before = as_after
    return indices_array[:found], groups_array[:found]


def distinct(const int64_t[::1] numbers):
    """See :func:`fusion.sort.distinct_by_numpy`."""
    cdef Py_ssize_t row, count = numbers.shape[0], found = 0
    cdef vector[ByNumber] sorted_numbers
    different_array, rows_array = np.empty(count, np.int64), np.empty(count, np.int64)
    cdef int64_t[::1] different = different_array, rows = rows_array
    sorted_numbers.resize(count)
    for row in range(count):
        sorted_numbers[row].number = numbers[row]
        sorted_numbers[row].index = row
    sort(sorted_numbers.begin(), sorted_numbers.end())
    for row in range(count):
        if found == 0 or different[found - 1] != sorted_numbers[row].number:
            different[found] = sorted_numbers[row].number
            found += 1
        rows[sorted_numbers[row].index] = found - 1
    return different_array[:found], rows_array
