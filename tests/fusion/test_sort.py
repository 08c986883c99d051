"""Sorting: the results are those of Python's own sort."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion.sort import descending, descending_by_id, distinct

VALUES = st.sampled_from((0.0, -0.0, 0.5, math.nextafter(0.5, 1), 1.0, -1.0, math.inf, -math.inf))
KEYS = st.lists(st.tuples(VALUES, st.integers(0, 3), st.text("abc", max_size=2)), max_size=60)


@given(KEYS)
def test_the_largest_is_first_then_the_smaller_tie_then_the_smaller_id(keys: list[tuple[float, int, str]]) -> None:
    values = np.array([value for value, _, _ in keys], np.float64)
    ties = np.array([tie for _, tie, _ in keys], np.int64)
    asked: list[int] = []

    def ids(indices: np.ndarray) -> list[str]:
        asked.extend(indices.tolist())
        return [keys[index][2] for index in indices]

    order = descending_by_id(values, ties, ids).tolist()
    assert order == sorted(range(len(keys)), key=lambda index: (-values[index], ties[index], keys[index][2], index))
    pairs = [key[:2] for key in keys]
    assert set(asked) == {index for index, pair in enumerate(pairs) if pairs.count(pair) > 1}


def test_what_is_no_number_comes_last() -> None:
    values, ties = np.array([math.nan, 1.0, math.nan, -1.0, -math.inf] * 50), np.arange(250)
    order = descending(values, ties)
    assert np.isnan(values[order][150:]).all()
    assert sorted(order.tolist()) == list(range(250))


@given(numbers=st.lists(st.integers(-3, 40) | st.integers(-(2**63), 2**63 - 1), max_size=60))
def test_distinct_numbers_ascend(numbers: list[int]) -> None:
    different, rows = distinct(np.array(numbers, np.int64))
    assert different.tolist() == sorted(set(numbers))
    assert different[rows].tolist() == numbers
