# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Functions of :mod:`fusion.boosts` without a Python object for each number."""

import numpy as np

from libc.math cimport exp


def exponentials(const double[::1] values):
    """See :func:`fusion.boosts.exponentials_by_math`."""
    cdef Py_ssize_t row
    result_array = np.empty(values.shape[0], np.float64)
    cdef double[::1] result = result_array
    for row in range(values.shape[0]):
        result[row] = exp(values[row])
    return result_array
