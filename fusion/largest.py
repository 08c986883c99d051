"""The largest values of a column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusion.rank_fields import Ints
from fusion.sort import descending


def top(values: npt.NDArray[np.floating], ties: Ints, count: int) -> Ints:
    """The indices of the ``count`` largest values, the largest first; of equal values, the one with the smaller tie.

    Only those that may be among them are sorted.

    :param values: without NaN.
    :param ties: parallel to ``values``; distinct.
    """
    chosen: Ints = np.arange(len(values))
    if len(values) > count:
        if count <= 0:
            return chosen[:0]
        minimum = np.partition(values, len(values) - count)[len(values) - count]
        chosen = np.flatnonzero(values >= minimum)
        values, ties = values.take(chosen), ties.take(chosen)
    return chosen.take(descending(values.astype(np.float64, copy=False), ties)[:count])
