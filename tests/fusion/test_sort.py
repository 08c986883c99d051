"""Sorting, compiled and by numpy: the same results, those of Python's own sort."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import sort


class Implementation(NamedTuple):
    descending: Callable[..., np.ndarray]
    tied: Callable[..., tuple[np.ndarray, np.ndarray]]
    distinct: Callable[..., tuple[np.ndarray, np.ndarray]]


INSTALLED = Implementation(sort.descending, sort.tied, sort.distinct)
"""The compiled one, unless the package was built without a C++ compiler."""
BY_NUMPY = Implementation(sort.descending_by_numpy, sort.tied_by_numpy, sort.distinct_by_numpy)

each_implementation = pytest.mark.parametrize("implementation", [INSTALLED, BY_NUMPY], ids=["installed", "numpy"])

VALUES = st.sampled_from((0.0, -0.0, 0.5, math.nextafter(0.5, 1), 1.0, -1.0, math.inf, -math.inf))
KEYS = st.lists(st.tuples(VALUES, st.integers(0, 3)), max_size=60)


def columns(keys: list[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for value, _ in keys], np.float64), np.array([tie for _, tie in keys], np.int64)


@each_implementation
@given(keys=KEYS)
def test_the_largest_is_first_and_ties_are_named(implementation: Implementation, keys: list[tuple[float, int]]) -> None:
    values, ties = columns(keys)
    order = implementation.descending(values, ties)
    assert sorted(order.tolist()) == list(range(len(keys)))
    ordered = [keys[index] for index in order.tolist()]
    assert ordered == sorted(keys, key=lambda key: (-key[0], key[1]))
    indices, groups = implementation.tied(order, values, ties)
    runs = [list(run) for _, run in groupby(range(len(keys)), key=ordered.__getitem__)]
    expected = [(index, number) for number, run in enumerate(runs, start=1) if len(run) > 1 for index in run]
    assert list(zip(indices.tolist(), groups.tolist(), strict=True)) == expected


@each_implementation
def test_what_is_no_number_comes_last(implementation: Implementation) -> None:
    values, ties = np.array([math.nan, 1.0, math.nan, -1.0] * 50), np.arange(200)
    order = implementation.descending(values, ties)
    assert np.isnan(values[order][100:]).all()
    assert sorted(order.tolist()) == list(range(200))


@each_implementation
@given(numbers=st.lists(st.integers(-3, 40) | st.integers(-(2**63), 2**63 - 1), max_size=60))
def test_distinct_numbers_ascend(implementation: Implementation, numbers: list[int]) -> None:
    different, rows = implementation.distinct(np.array(numbers, np.int64))
    assert different.tolist() == sorted(set(numbers))
    assert different[rows].tolist() == numbers
