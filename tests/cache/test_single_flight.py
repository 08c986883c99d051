from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import SingleFlight

pytestmark = pytest.mark.anyio


class Load:
    """Returns the number of its calls, or raises ``error``, after ``proceed`` is set."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.cancelled = 0
        self.proceed = asyncio.Event()
        self._error = error

    async def __call__(self) -> int:
        self.calls += 1
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self._error:
            raise self._error
        return self.calls


async def _run_other_tasks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_thousand_concurrent_callers_load_once() -> None:
    flights, load = SingleFlight[int](), Load()
    callers = [asyncio.create_task(flights.run("k", load)) for _ in range(1_000)]
    await _run_other_tasks()
    assert "k" in flights
    load.proceed.set()
    assert set(await asyncio.gather(*callers)) == {1}
    assert (load.calls, flights.coalesced, len(flights)) == (1, 999, 0)
    assert "k" not in flights
    assert await flights.run("k", load) == 2


async def test_cancelling_one_waiter_does_not_affect_the_others() -> None:
    flights, load = SingleFlight[int](), Load()
    callers = [asyncio.create_task(flights.run("k", load)) for _ in range(3)]
    await _run_other_tasks()
    callers[0].cancel()
    callers[1].cancel()
    await _run_other_tasks()
    assert load.cancelled == 0
    load.proceed.set()
    assert await callers[2] == 1


async def test_when_the_last_waiter_is_cancelled_the_computation_is_cancelled() -> None:
    flights, load = SingleFlight[int](), Load()
    callers = [asyncio.create_task(flights.run("k", load)) for _ in range(2)]
    await _run_other_tasks()
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    load.proceed.set()
    # A call from now on must not wait for the computation that is being cancelled.
    assert await flights.run("k", load) == 2
    assert load.cancelled == 1


async def test_an_error_is_raised_to_every_waiter_and_to_no_later_caller() -> None:
    flights, load = SingleFlight[int](), Load(ZeroDivisionError("once"))
    callers = [asyncio.create_task(flights.run("k", load)) for _ in range(3)]
    await _run_other_tasks()
    load.proceed.set()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["once"] * 3
    successful = Load()
    successful.proceed.set()
    assert await flights.run("k", successful) == 1


async def test_a_detached_computation_continues_when_its_only_waiter_is_cancelled() -> None:
    flights, load = SingleFlight[int](), Load()
    flights.run_detached("k", load)
    flights.run_detached("k", load)
    caller = asyncio.create_task(flights.run("k", load))
    await _run_other_tasks()
    caller.cancel()
    await _run_other_tasks()
    assert (load.calls, load.cancelled, len(flights)) == (1, 0, 1)
    load.proceed.set()
    await _run_other_tasks()
    assert len(flights) == 0


async def test_attach_starts_the_computation_before_it_is_awaited() -> None:
    flights, load = SingleFlight[int](), Load()
    load.proceed.set()
    first = flights.attach("k", load)
    assert "k" in flights
    second = flights.attach("k", load)
    assert flights.coalesced == 1
    assert await asyncio.gather(first, second) == [1, 1]
    assert (load.calls, len(flights)) == (1, 0)


async def test_an_error_of_a_detached_computation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    flights, load = SingleFlight[int](), Load(ZeroDivisionError("division of 1"))
    flights.run_detached("k", load)
    load.proceed.set()
    await _run_other_tasks()
    assert [record.getMessage() for record in caplog.records] == ["background refresh failed: division of 1"]
    assert len(flights) == 0


@given(st.lists(st.sampled_from(["call", "finish", "cancel one", "cancel all"]), max_size=30))
def test_there_is_one_load_for_each_group_of_concurrent_callers(steps: list[str]) -> None:
    """A group ends when its load returns or when its last caller is cancelled; the next call begins another one."""

    async def run() -> None:
        flights, load = SingleFlight[int](), Load()
        waiting: list[asyncio.Task[int]] = []
        groups = calls = cancelled_groups = 0
        for step in steps:
            if step == "call":
                groups += not waiting
                calls += 1
                waiting.append(asyncio.create_task(flights.run("k", load)))
            elif step == "finish":
                load.proceed.set()
                assert set(await asyncio.gather(*waiting)) <= {groups}
                load.proceed.clear()
                waiting = []
            elif waiting:
                count = 1 if step == "cancel one" else len(waiting)
                for caller in waiting[:count]:
                    caller.cancel()
                waiting = waiting[count:]
                cancelled_groups += not waiting
            await _run_other_tasks()
            assert (load.calls, load.cancelled, len(flights)) == (groups, cancelled_groups, bool(waiting))
            assert flights.coalesced == calls - groups
        for caller in waiting:
            caller.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())
