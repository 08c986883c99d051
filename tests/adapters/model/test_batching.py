from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from adapters.model.batching import sized_batches


@given(st.lists(st.integers(0, 12)), st.integers(1, 10))
def test_slices_have_every_item_once_and_are_as_large_as_allowed(sizes: list[int], max_bytes: int) -> None:
    found = list(sized_batches(sizes, int, max_bytes))
    assert [size for batch in found for size in batch] == sizes
    assert all(len(batch) == 1 or sum(batch) <= max_bytes for batch in found)
    assert all(sum(batch) + following[0] > max_bytes for batch, following in pairwise(found))
    assert all(found)
