from __future__ import annotations

import asyncio

import pytest

from cache import Flights

pytestmark = pytest.mark.anyio


class Load:
    """Loads when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.cancelled = 0
        self.go_on = asyncio.Event()
        self._error = error

    async def __call__(self) -> int:
        self.calls += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self._error:
            raise self._error
        return self.calls


async def _turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_however_many_ask_it_is_loaded_once() -> None:
    flights, load = Flights[int](), Load()
    waiting = [asyncio.create_task(flights.load("k", load)) for _ in range(1_000)]
    await _turn()
    load.go_on.set()
    assert set(await asyncio.gather(*waiting)) == {1}
    assert (load.calls, flights.joined, len(flights)) == (1, 999, 0)
    assert await flights.load("k", load) == 2


async def test_who_gives_up_leaves_the_others_theirs() -> None:
    flights, load = Flights[int](), Load()
    waiting = [asyncio.create_task(flights.load("k", load)) for _ in range(3)]
    await _turn()
    waiting[0].cancel()
    waiting[1].cancel()
    await _turn()
    assert load.cancelled == 0
    load.go_on.set()
    assert await waiting[2] == 1


async def test_when_the_last_has_given_up_the_load_is_cancelled() -> None:
    flights, load = Flights[int](), Load()
    waiting = [asyncio.create_task(flights.load("k", load)) for _ in range(2)]
    await _turn()
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    load.go_on.set()
    # Who asks now must not join what is being cancelled.
    assert await flights.load("k", load) == 2
    assert load.cancelled == 1


async def test_a_failure_is_for_who_waits_and_for_nobody_after() -> None:
    flights, load = Flights[int](), Load(ZeroDivisionError("once"))
    waiting = [asyncio.create_task(flights.load("k", load)) for _ in range(3)]
    await _turn()
    load.go_on.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(each) for each in outcomes] == ["once"] * 3
    fine = Load()
    fine.go_on.set()
    assert await flights.load("k", fine) == 1


async def test_a_flight_for_nobody_goes_on_when_who_joined_it_gives_up() -> None:
    flights, load = Flights[int](), Load()
    flights.begin("k", load)
    flights.begin("k", load)
    joined = asyncio.create_task(flights.load("k", load))
    await _turn()
    joined.cancel()
    await _turn()
    assert (load.calls, load.cancelled, len(flights)) == (1, 0, 1)
    load.go_on.set()
    await _turn()
    assert len(flights) == 0
