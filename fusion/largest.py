"""The largest values of a column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusion.rank_fields import Ints
from fusion.sort import descending

_FEW = 512
"""Sorting so many values takes less time than finding those to sort."""


def top(values: npt.NDArray[np.floating], ties: Ints, count: int) -> Ints:
    """The indices of the ``count`` largest values, the largest first; of equal values, the one with the smaller tie.

    Of many values, only those that may be among them are sorted.

    :param values: without NaN.
    :param ties: parallel to ``values``; distinct.
    """
    if len(values) <= max(count, _FEW):
        return descending(values, ties)[: max(count, 0)]
    if count <= 0:
        return np.zeros(0, np.int64)
    minimum = np.partition(values, len(values) - count)[len(values) - count]
    chosen: Ints = np.flatnonzero(values >= minimum)
    return chosen.take(descending(values.take(chosen), ties.take(chosen))[:count])
