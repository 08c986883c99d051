"""The description of a source."""

from __future__ import annotations

import pytest

from fusion.source import Source


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5, 3.0])
def test_exponents_are_multiples_of_one_half(exponent: float) -> None:
    assert Source("a", exponent=exponent).exponent == exponent


@pytest.mark.parametrize("exponent", [-0.5, 0.3, 1.25, float("inf"), float("nan")])
def test_another_exponent_is_refused(exponent: float) -> None:
    with pytest.raises(ValueError, match=f"source 'a': exponent is {exponent}, allowed are multiples of 0.5 from 0"):
        Source("a", exponent=exponent)
