from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import Memo


def test_the_least_recently_used_goes_first() -> None:
    memo: Memo[str, int] = Memo(2)
    memo.put("a", 1)
    memo.put("b", 2)
    assert memo.get("a") == 1
    memo.put("c", 3)
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (1, None, 3)


@pytest.mark.parametrize("entries", [0, -1])
def test_a_memo_of_nothing_is_refused(entries: int) -> None:
    with pytest.raises(ValueError, match=f"a memo of {entries} entries"):
        Memo(entries)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers())), st.integers(1, 5))
def test_it_never_holds_more_than_it_may_and_never_lies(steps: list[tuple[int, int]], entries: int) -> None:
    memo: Memo[int, int] = Memo(entries)
    latest: dict[int, int] = {}
    for key, value in steps:
        memo.put(key, value)
        latest[key] = value
        assert len(memo) <= entries
        assert memo.get(key) == value
        assert all(memo.get(other) in {None, latest[other]} for other in latest)
