"""The vector that a request brings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.planning.errors import BadRequest
from orchestrator.planning.query_vector import unit_vector


def unit_vector_of(numbers: list[float]) -> list[float]:
    """The numbers of the vector."""
    vector: list[float] = np.frombuffer(unit_vector(numbers, len(numbers)), "<f4").tolist()
    return vector


vectors = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


@given(vectors)
def test_any_finite_vector_but_zero_is_scaled_to_unit_length(numbers: list[float]) -> None:
    assume(any(numbers))
    vector = unit_vector_of(numbers)
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-6)
    assert all(
        math.copysign(1, scaled) == math.copysign(1, given_)
        for scaled, given_ in zip(vector, numbers, strict=True)
        if scaled
    )


@given(st.lists(st.integers(-1_000, 1_000), min_size=1, max_size=20), st.integers(-900, 900))
def test_the_length_of_the_vector_does_not_matter(numbers: list[int], exponent: int) -> None:
    """A factor that is a power of two changes no digit."""
    assume(any(numbers))
    scaled = [number * 2.0**exponent for number in numbers]
    assert unit_vector(scaled, len(numbers)) == unit_vector([float(number) for number in numbers], len(numbers))


@pytest.mark.parametrize("number", [5e-324, 1.7e308, -5e-324])
def test_the_smallest_and_the_largest_numbers_neither_vanish_nor_overflow(number: float) -> None:
    assert unit_vector_of([number, 0.0]) == [math.copysign(1.0, number), 0.0]


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([], "vector: 0 numbers, the documents have 2"),
        ([1.0], "vector: 1 numbers, the documents have 2"),
        ([1.0, 2.0, 3.0], "vector: 3 numbers, the documents have 2"),
        ([0.0, -0.0], "vector: must contain finite numbers, one of them not 0"),
        ([1.0, math.nan], "vector: must contain finite numbers, one of them not 0"),
        ([1.0, math.inf], "vector: must contain finite numbers, one of them not 0"),
        ([-math.inf, math.nan], "vector: must contain finite numbers, one of them not 0"),
    ],
)
def test_a_vector_that_cannot_be_used_is_refused(numbers: list[float], reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        unit_vector(numbers, 2)
