from __future__ import annotations

import asyncio

import anyio
import pytest

from cache import CacheEntry, CachePolicy, Computed, MemoryLevel, Stats, TieredCache
from tests.clock import Clock

pytestmark = pytest.mark.anyio


class DictLevel:
    """A shared level in this process, in place of Redis, which ``test_redis.py`` tests."""

    state = "closed"

    def __init__(self) -> None:
        self.stats = Stats()
        self.entries: dict[bytes, CacheEntry] = {}
        self.l2_reads = 0

    async def get(self, key: bytes, now: float) -> CacheEntry | None:
        self.l2_reads += 1
        entry = self.entries.get(key)
        return None if entry is None or entry.freshness(now) == "expired" else entry

    def put(self, key: bytes, entry: CacheEntry, now: float) -> None:
        self.entries[key] = entry


class Compute:
    """Computes the number of its calls."""

    def __init__(self, cacheable: bool = True) -> None:
        self.calls = 0
        self.cacheable = cacheable

    async def __call__(self, recompute: bool) -> Computed:
        self.calls += 1
        await asyncio.sleep(0)
        return Computed(b"%d" % self.calls, self.cacheable)


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000.0)


@pytest.fixture
def l2() -> DictLevel:
    return DictLevel()


def tiered(clock: Clock, l2: DictLevel | None = None) -> TieredCache:
    """Fresh for 10 seconds, stale for 5 more; a degraded result is stored for 1 second."""
    return TieredCache(MemoryLevel(1_000_000), l2, CachePolicy(10.0, 5.0, 1.0), clock, lambda: 0.0)


async def test_a_value_is_computed_once_and_then_comes_from_the_first_level_that_has_it(
    clock: Clock, l2: DictLevel
) -> None:
    compute = Compute()
    one, other = tiered(clock, l2), tiered(clock, l2)
    assert await one.get_or_compute(b"k", compute) == (b"1", "miss")
    assert await one.get_or_compute(b"k", compute) == (b"1", "l1")
    assert await other.get_or_compute(b"k", compute) == (b"1", "l2")
    assert await other.get_or_compute(b"k", compute) == (b"1", "l1")
    assert (compute.calls, l2.l2_reads) == (1, 2)


async def test_a_stale_entry_is_returned_while_it_is_recomputed(clock: Clock) -> None:
    compute, cache = Compute(), tiered(clock)
    await cache.get_or_compute(b"k", compute)
    clock.now += 10.0
    assert [await cache.get_or_compute(b"k", compute) for _ in range(3)] == [(b"1", "stale")] * 3
    await anyio.wait_all_tasks_blocked()
    assert await cache.get_or_compute(b"k", compute) == (b"2", "l1")
    clock.now += 15.0
    assert await cache.get_or_compute(b"k", compute) == (b"3", "miss")


async def test_a_stale_entry_of_the_second_level_is_returned_likewise(clock: Clock, l2: DictLevel) -> None:
    compute = Compute()
    await tiered(clock, l2).get_or_compute(b"k", compute)
    clock.now += 12.0
    other = tiered(clock, l2)
    assert await other.get_or_compute(b"k", compute) == (b"1", "stale")
    await anyio.wait_all_tasks_blocked()
    assert await other.get_or_compute(b"k", compute) == (b"2", "l1")


async def test_a_degraded_result_is_stored_briefly_and_in_this_process_only(clock: Clock, l2: DictLevel) -> None:
    compute, cache = Compute(cacheable=False), tiered(clock, l2)
    assert await cache.get_or_compute(b"k", compute) == (b"1", "miss")
    clock.now += 0.9
    assert await cache.get_or_compute(b"k", compute) == (b"1", "l1")
    clock.now += 0.2
    assert await cache.get_or_compute(b"k", compute) == (b"2", "miss")
    assert l2.entries == {}


async def test_refresh_recomputes_and_bypass_stores_nothing(clock: Clock) -> None:
    compute, cache = Compute(), tiered(clock)
    assert await cache.get_or_compute(b"k", compute, "bypass") == (b"1", "miss")
    assert await cache.get_or_compute(b"k", compute) == (b"2", "miss")
    assert await cache.get_or_compute(b"k", compute, "refresh") == (b"3", "miss")
    assert await cache.get_or_compute(b"k", compute) == (b"3", "l1")


async def test_a_key_that_is_not_shared_never_reaches_the_second_level(clock: Clock, l2: DictLevel) -> None:
    compute, cache = Compute(), tiered(clock, l2)
    await cache.get_or_compute(b"k", compute, shared=False)
    assert (l2.entries, l2.l2_reads) == ({}, 0)
    assert await cache.get_or_compute(b"k", compute, shared=False) == (b"1", "l1")


async def test_a_degraded_result_never_replaces_a_complete_one(clock: Clock) -> None:
    complete, degraded, cache = Compute(), Compute(cacheable=False), tiered(clock)
    assert await cache.get_or_compute(b"k", complete, flight_key=b"long") == (b"1", "miss")
    assert await cache.get_or_compute(b"k", degraded, "refresh", flight_key=b"short") == (b"1", "miss")
    assert await cache.get_or_compute(b"k", Compute(), flight_key=b"long") == (b"1", "l1")
    other = tiered(clock)
    assert await other.get_or_compute(b"k", degraded, flight_key=b"short") == (b"2", "miss")
    assert await other.get_or_compute(b"k", complete, flight_key=b"long") == (b"2", "miss")


async def test_a_refresh_is_computed_from_nothing_that_was_cached(clock: Clock) -> None:
    arguments: list[bool] = []

    async def compute(recompute: bool) -> Computed:
        arguments.append(recompute)
        return Computed(b"x", cacheable=True)

    cache = tiered(clock)
    await cache.get_or_compute(b"k", compute)
    clock.now += 11.0
    await cache.get_or_compute(b"k", compute)
    await anyio.wait_all_tasks_blocked()
    await cache.get_or_compute(b"k", compute, "refresh")
    assert arguments == [False, True, True]
    await cache.get_or_compute(b"k", compute, "bypass")
    assert arguments == [False, True, True, True]


async def test_an_error_is_not_cached(clock: Clock) -> None:
    async def fails(recompute: bool) -> Computed:
        raise ZeroDivisionError

    cache = tiered(clock)
    with pytest.raises(ZeroDivisionError):
        await cache.get_or_compute(b"k", fails)
    assert await cache.get_or_compute(b"k", Compute()) == (b"1", "miss")


async def test_only_calls_with_the_same_flight_key_share_a_computation(clock: Clock) -> None:
    compute, cache = Compute(), tiered(clock)
    await asyncio.gather(*(cache.get_or_compute(b"k", compute, flight_key=limit) for limit in (b"100", b"100", b"200")))
    assert (compute.calls, cache.single_flight.coalesced) == (2, 1)


class Overloaded(Exception):
    pass


async def test_a_computation_that_is_rejected_does_not_begin_and_cached_entries_are_returned(
    clock: Clock,
) -> None:
    compute, cache = Compute(), tiered(clock)
    for mode in ("use", "refresh", "bypass"):
        with pytest.raises(Overloaded):
            await cache.get_or_compute(b"k", compute, mode, reject=Overloaded)
    assert compute.calls == 0
    await cache.get_or_compute(b"k", compute)
    assert await cache.get_or_compute(b"k", compute, reject=Overloaded) == (b"1", "l1")
    clock.now += 10.0
    assert await cache.get_or_compute(b"k", compute, reject=Overloaded) == (b"1", "stale")
    await anyio.wait_all_tasks_blocked()
    assert compute.calls == 1


async def test_waiting_for_a_computation_that_is_under_way_is_never_rejected(clock: Clock) -> None:
    compute, cache = Compute(), tiered(clock)
    first = asyncio.create_task(cache.get_or_compute(b"k", compute))
    await asyncio.sleep(0)
    assert await cache.get_or_compute(b"k", compute, reject=Overloaded) == (b"1", "miss")
    assert await first == (b"1", "miss")


async def test_a_degraded_result_is_found_again_by_calls_with_the_same_flight_key_only(clock: Clock) -> None:
    cache, degraded = tiered(clock), Compute(cacheable=False)
    assert await cache.get_or_compute(b"k", degraded, flight_key=b"short") == (b"1", "miss")
    assert await cache.get_or_compute(b"k", degraded, flight_key=b"short") == (b"1", "l1")
    assert await cache.get_or_compute(b"k", degraded, flight_key=b"long") == (b"2", "miss")
    clock.now += 1.0
    assert await cache.get_or_compute(b"k", degraded, flight_key=b"short") == (b"3", "miss")
    assert (cache.l1.stats.hits, cache.l1.stats.misses) == (1, 3)


@pytest.mark.parametrize("shared", [True, False])
async def test_what_is_recomputed_reaches_the_second_level_if_the_key_is_shared(
    clock: Clock, l2: DictLevel, shared: bool
) -> None:
    compute, cache = Compute(), tiered(clock, l2)
    await cache.get_or_compute(b"k", compute, shared=shared)
    clock.now += 10.0
    assert await cache.get_or_compute(b"k", compute, shared=shared) == (b"1", "stale")
    await anyio.wait_all_tasks_blocked()
    assert {key: entry.content for key, entry in l2.entries.items()} == ({b"k": b"2"} if shared else {})
    await cache.get_or_compute(b"k", compute, "refresh", shared=shared)
    assert {key: entry.content for key, entry in l2.entries.items()} == ({b"k": b"3"} if shared else {})


async def test_stale_entries_of_two_keys_are_recomputed_at_the_same_time(clock: Clock) -> None:
    cache, computes = tiered(clock), {b"a": Compute(), b"b": Compute()}
    for key, compute in computes.items():
        await cache.get_or_compute(key, compute)
    clock.now += 10.0
    for key, compute in computes.items():
        await cache.get_or_compute(key, compute)
    await anyio.wait_all_tasks_blocked()
    assert [compute.calls for compute in computes.values()] == [2, 2]


async def test_the_mean_age_is_that_of_all_entries_found(clock: Clock) -> None:
    compute, cache = Compute(), tiered(clock)
    await cache.get_or_compute(b"k", compute)
    for seconds in (0.5, 2.5, 8.0, 1.0):  # found at the ages .5, 3, 11 and 12: the last two are stale
        clock.now += seconds
        entry = cache.l1.get(b"k", clock.now)
        assert entry is not None
    stats = cache.l1.stats
    assert (stats.hits, stats.stale, stats.misses) == (2, 2, 1)
    assert stats.mean_age_s == pytest.approx((0.5 + 3 + 11 + 12) / 4)
    assert stats.hit_rate == 4 / 5
