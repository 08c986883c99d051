from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import CacheEntry, MemoryLevel
from cache.memory import OVERHEAD


def entry(content: bytes = b"x", created_at: float = 0.0) -> CacheEntry:
    return CacheEntry(content, created_at, ttl_s=10.0, stale_while_revalidate_s=5.0)


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    memory = MemoryLevel(2 * (OVERHEAD + 2))
    memory.put(b"a", entry())
    memory.put(b"b", entry())
    assert memory.get(b"a", 1.0) == entry()
    memory.put(b"c", entry())
    assert memory.get(b"b", 1.0) is None
    assert memory.get(b"a", 1.0) == memory.get(b"c", 1.0) == entry()
    assert (memory.stats.evictions, memory.stats.hits, memory.stats.misses, memory.stats.stored) == (1, 3, 1, 3)


def test_a_stale_entry_is_returned_and_an_expired_one_is_deleted() -> None:
    memory = MemoryLevel(10_000)
    memory.put(b"a", entry())
    assert memory.get(b"a", 12.0) == entry()
    assert memory.get(b"a", 15.0) is None
    assert (len(memory), memory.size_bytes) == (0, 0)
    assert (memory.stats.stale, memory.stats.misses, memory.stats.mean_age_s) == (1, 1, 12.0)
    assert memory.stats.hit_rate == 0.5


def test_an_entry_larger_than_the_cache_is_not_stored_and_evicts_nothing() -> None:
    memory = MemoryLevel(OVERHEAD + 10)
    memory.put(b"a", entry())
    memory.put(b"b", entry(b"x" * 100))
    assert memory.get(b"a", 0.0) == entry()
    assert memory.stats.skipped == 1


MAX_BYTES = 4_000
steps = st.lists(st.tuples(st.sampled_from(["put", "put", "get", "delete"]), st.integers(0, 9), st.integers(0, 4_000)))


@given(steps)
def test_the_bytes_are_those_of_the_stored_entries_and_never_above_the_bound(steps: list[tuple[str, int, int]]) -> None:
    """Compared with a model: entries by key, the least recently used first, each with ``OVERHEAD`` bytes more."""
    memory = MemoryLevel(MAX_BYTES)
    model: OrderedDict[bytes, CacheEntry] = OrderedDict()

    def model_bytes() -> int:
        return sum(1 + len(each.content) + OVERHEAD for each in model.values())

    for action, number, size in steps:
        key = bytes([number])
        if action == "delete":
            memory.delete(key)
            model.pop(key, None)
        elif action == "get":
            assert memory.get(key, 0.0) == model.get(key)
            if key in model:
                model.move_to_end(key)
        else:
            memory.put(key, entry(b"x" * size))
            model.pop(key, None)
            if 1 + size + OVERHEAD <= MAX_BYTES:
                model[key] = entry(b"x" * size)
            while model_bytes() > MAX_BYTES:
                model.popitem(last=False)
        assert len(memory) == len(model)
        assert memory.size_bytes == model_bytes() <= MAX_BYTES
    assert [memory.get(bytes([number]), 0.0) for number in range(10)] == [
        model.get(bytes([number])) for number in range(10)
    ]


@pytest.mark.parametrize("max_bytes", [0, -1])
def test_a_size_that_is_not_positive_is_an_error(max_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"memory cache is {max_bytes} bytes, allowed are 1 and more"):
        MemoryLevel(max_bytes)


def test_a_lookup_of_two_keys_is_one_lookup() -> None:
    memory = MemoryLevel(10_000)
    memory.put(b"a", entry())
    assert memory.get(b"a", 1.0, b"b") == memory.get(b"b", 1.0, b"a") == entry()
    assert memory.get(b"b", 1.0, b"c") is None
    assert (memory.stats.hits, memory.stats.misses) == (2, 1)
    assert memory.get(b"b", 15.0, b"a") is None
    assert (memory.stats.misses, len(memory)) == (2, 0)
