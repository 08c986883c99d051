"""The largest values of a column."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion.largest import top


@given(st.lists(st.sampled_from((0.0, 0.5, 0.5000001, 1.0, -1.0)), max_size=40), st.integers(-1, 45), st.randoms())
def test_it_equals_sorting_everything(values: list[float], count: int, rng: object) -> None:
    ties = list(range(len(values)))
    rng.shuffle(ties)  # type: ignore[attr-defined]
    expected = sorted(range(len(values)), key=lambda index: (-values[index], ties[index]))[: max(count, 0)]
    assert top(np.array(values), np.array(ties, np.int64), count).tolist() == expected
