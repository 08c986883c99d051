"""Sorting of a few hundred numbers, which every search does several times: compiled, or by numpy without a compiler.

Both give the same results, and a test compares them. docs/decisions/0020-compiled-walk.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = [
    "descending",
    "descending_by_id",
    "descending_by_numpy",
    "distinct",
    "distinct_by_numpy",
    "tied",
    "tied_by_numpy",
]

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def descending_by_numpy(values: _Floats, ties: _Ints) -> _Ints:
    """The indices of the values, the largest first; of equal values, the one with the smaller tie.

    :param values: NaN counts as less than all others.
    :param ties: parallel to ``values``; the order of equal values with equal ties is not defined.
    """
    order: _Ints = np.lexsort((ties, -np.where(np.isnan(values), -np.inf, values)))
    return order


def tied_by_numpy(order: _Ints, values: _Floats, ties: _Ints) -> tuple[_Ints, _Ints]:
    """The indices into an order by :func:`descending` at which both the value and the tie equal those of a neighbour;
    and for each of them the number of its group of equal ones, rising."""
    values, ties = values.take(order), ties.take(order)
    same = (values[1:] == values[:-1]) & (ties[1:] == ties[:-1])
    indices = np.flatnonzero(np.append(same, False) | np.append(False, same)[: len(order)])
    return indices, np.append(1, 1 + (~same).cumsum()).take(indices)


def distinct_by_numpy(numbers: _Ints) -> tuple[_Ints, _Ints]:
    """The distinct numbers, ascending; and for each of ``numbers``, its index among them."""
    # The same as np.unique without options, in half of the time.
    order = numbers.argsort(kind="stable")
    ascending = numbers.take(order)
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    rows = np.empty(len(numbers), np.int64)
    rows[order] = is_first.cumsum() - 1
    return ascending[is_first], rows


try:
    from fusion.sort_kernel import descending, distinct, tied
except ImportError:  # the package was built without a C++ compiler
    descending, distinct, tied = descending_by_numpy, distinct_by_numpy, tied_by_numpy


def descending_by_id(values: _Floats, ties: _Ints, ids: Callable[[_Ints], Sequence[str]]) -> _Ints:
    """The indices of the values, the largest first; of equal values the smaller tie, then the smaller id.

    :param values, ties: as in :func:`descending_by_numpy`.
    :param ids: the ids at some indices; it is called only for those at which ids decide.
    """
    order = descending(values, ties)
    indices, groups = tied(order, values, ties)
    if len(indices):
        members = order[indices]
        by_id = sorted(zip(groups.tolist(), ids(members), members.tolist(), strict=True))
        order[indices] = [member for _, _, member in by_id]
    return order
