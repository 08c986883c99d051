from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import Entry, Memory
from cache.memory import OVERHEAD


def entry(content: bytes = b"x", born: float = 0.0) -> Entry:
    return Entry(content, born, fresh_s=10.0, stale_s=5.0)


def test_the_least_recently_used_goes_first() -> None:
    memory = Memory(2 * (OVERHEAD + 2))
    memory.put(b"a", entry())
    memory.put(b"b", entry())
    assert memory.get(b"a", 1.0) == entry()
    memory.put(b"c", entry())
    assert memory.get(b"b", 1.0) is None
    assert memory.get(b"a", 1.0) == memory.get(b"c", 1.0) == entry()
    assert (memory.stats.evictions, memory.stats.hits, memory.stats.misses, memory.stats.stored) == (1, 3, 1, 3)


def test_what_is_stale_is_given_and_what_is_expired_is_forgotten() -> None:
    memory = Memory(10_000)
    memory.put(b"a", entry())
    assert memory.get(b"a", 12.0) == entry()
    assert memory.get(b"a", 15.0) is None
    assert (len(memory), memory.bytes) == (0, 0)
    assert (memory.stats.stale, memory.stats.misses, memory.stats.mean_age_s) == (1, 1, 12.0)
    assert memory.stats.hit_rate == 0.5


def test_what_is_larger_than_everything_may_be_is_not_kept_and_costs_nothing_else() -> None:
    memory = Memory(OVERHEAD + 10)
    memory.put(b"a", entry())
    memory.put(b"b", entry(b"x" * 100))
    assert memory.get(b"a", 0.0) == entry()
    assert memory.stats.skipped == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2_000), st.booleans())))
def test_its_bytes_are_those_of_what_it_holds_and_never_too_many(steps: list[tuple[int, int, bool]]) -> None:
    memory = Memory(4_000)
    for number, size, forget in steps:
        if forget:
            memory.delete(bytes([number]))
        else:
            memory.put(bytes([number]), entry(b"x" * size))
        held = [memory._entries[each] for each in memory._entries]
        assert memory.bytes == sum(1 + len(each.content) + OVERHEAD for each in held) <= 4_000


def test_a_cache_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 bytes keeps nothing"):
        Memory(0)
