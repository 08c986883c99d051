from __future__ import annotations

import asyncio

import pytest

from cache import Entry, Made, Memory, Stats, Tiered, Times

pytestmark = pytest.mark.anyio


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Shelf:
    """A second level in this process: it stands in for Redis, which ``test_redis.py`` has."""

    state = "closed"

    def __init__(self) -> None:
        self.stats = Stats()
        self.held: dict[bytes, Entry] = {}
        self.asked = 0

    async def get(self, key: bytes, now: float) -> Entry | None:
        self.asked += 1
        entry = self.held.get(key)
        return None if entry is None or entry.freshness(now) == "expired" else entry

    def put(self, key: bytes, entry: Entry, now: float) -> None:
        self.held[key] = entry


class Load:
    def __init__(self, lasting: bool = True) -> None:
        self.calls = 0
        self.lasting = lasting

    async def __call__(self, anew: bool) -> Made:
        self.calls += 1
        await asyncio.sleep(0)
        return Made(b"%d" % self.calls, self.lasting)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def tiered(clock: Clock, shelf: Shelf | None = None) -> Tiered:
    """Fresh for 10 seconds, used for 5 more; what is not lasting for 1."""
    return Tiered(Memory(1_000_000), shelf, Times(10.0, 5.0, 1.0), clock, lambda: 0.0)


async def test_it_is_made_once_and_then_comes_from_the_nearest_level(clock: Clock, shelf: Shelf) -> None:
    load = Load()
    here, there = tiered(clock, shelf), tiered(clock, shelf)
    assert await here.get(b"k", load) == (b"1", "miss")
    assert await here.get(b"k", load) == (b"1", "l1")
    assert await there.get(b"k", load) == (b"1", "l2")
    assert await there.get(b"k", load) == (b"1", "l1")
    assert (load.calls, shelf.asked) == (1, 2)


async def test_what_is_stale_is_given_while_it_is_made_anew(clock: Clock) -> None:
    load, kept = Load(), tiered(clock)
    await kept.get(b"k", load)
    clock.now += 10.0
    assert [await kept.get(b"k", load) for _ in range(3)] == [(b"1", "stale")] * 3
    await asyncio.sleep(0.01)
    assert await kept.get(b"k", load) == (b"2", "l1")
    clock.now += 15.0
    assert await kept.get(b"k", load) == (b"3", "miss")


async def test_what_is_stale_in_the_second_level_is_given_likewise(clock: Clock, shelf: Shelf) -> None:
    load = Load()
    await tiered(clock, shelf).get(b"k", load)
    clock.now += 12.0
    there = tiered(clock, shelf)
    assert await there.get(b"k", load) == (b"1", "stale")
    await asyncio.sleep(0.01)
    assert await there.get(b"k", load) == (b"2", "l1")


async def test_what_is_not_lasting_is_kept_for_a_moment_and_here_alone(clock: Clock, shelf: Shelf) -> None:
    load, kept = Load(lasting=False), tiered(clock, shelf)
    assert await kept.get(b"k", load) == (b"1", "miss")
    clock.now += 0.9
    assert await kept.get(b"k", load) == (b"1", "l1")
    clock.now += 0.2
    assert await kept.get(b"k", load) == (b"2", "miss")
    assert shelf.held == {}


async def test_refresh_makes_it_anew_and_bypass_keeps_nothing(clock: Clock) -> None:
    load, kept = Load(), tiered(clock)
    assert await kept.get(b"k", load, "bypass") == (b"1", "miss")
    assert await kept.get(b"k", load) == (b"2", "miss")
    assert await kept.get(b"k", load, "refresh") == (b"3", "miss")
    assert await kept.get(b"k", load) == (b"3", "l1")


async def test_a_key_that_others_do_not_share_goes_nowhere_else(clock: Clock, shelf: Shelf) -> None:
    load, kept = Load(), tiered(clock, shelf)
    await kept.get(b"k", load, shared=False)
    assert (shelf.held, shelf.asked) == ({}, 0)
    assert await kept.get(b"k", load, shared=False) == (b"1", "l1")


async def test_what_is_not_lasting_never_takes_the_place_of_what_is(clock: Clock) -> None:
    whole, partly, kept = Load(), Load(lasting=False), tiered(clock)
    assert await kept.get(b"k", whole, flight=b"long") == (b"1", "miss")
    assert await kept.get(b"k", partly, "refresh", flight=b"short") == (b"1", "miss")
    assert await kept.get(b"k", Load(), flight=b"long") == (b"1", "l1")
    other = tiered(clock)
    assert await other.get(b"k", partly, flight=b"short") == (b"2", "miss")
    assert await other.get(b"k", whole, flight=b"long") == (b"2", "miss")


async def test_a_renewal_is_made_of_nothing_that_was_kept(clock: Clock) -> None:
    told: list[bool] = []

    async def load(anew: bool) -> Made:
        told.append(anew)
        return Made(b"x", lasting=True)

    kept = tiered(clock)
    await kept.get(b"k", load)
    clock.now += 11.0
    await kept.get(b"k", load)
    await asyncio.sleep(0.01)
    await kept.get(b"k", load, "refresh")
    assert told == [False, True, True]


async def test_a_failure_is_not_kept(clock: Clock) -> None:
    async def fails(anew: bool) -> Made:
        raise ZeroDivisionError

    kept = tiered(clock)
    with pytest.raises(ZeroDivisionError):
        await kept.get(b"k", fails)
    assert await kept.get(b"k", Load()) == (b"1", "miss")


async def test_who_may_not_share_a_load_does_not(clock: Clock) -> None:
    load, kept = Load(), tiered(clock)
    await asyncio.gather(*(kept.get(b"k", load, flight=timeout) for timeout in (b"100", b"100", b"200")))
    assert (load.calls, kept.flights.joined) == (2, 1)
