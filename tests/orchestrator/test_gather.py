from __future__ import annotations

import logging
from time import perf_counter

import anyio
import pytest

from adapters import Unavailable
from fusion import Ranking
from orchestrator.gather import gather
from orchestrator.outcome import Answered, Failed

pytestmark = pytest.mark.anyio


def road(source: str, after: anyio.Event | None = None, error: Exception | None = None):
    async def ask() -> Ranking:
        if after:
            await after.wait()
        if error:
            raise error
        return Ranking(source, ("a",), (1.0,))

    return ask


async def test_outcomes_stand_in_the_order_asked_and_not_in_that_of_arrival() -> None:
    first = anyio.Event()

    async def opens() -> Ranking:
        first.set()
        return Ranking("b", (), ())

    outcomes = await gather({"a": road("a", after=first), "b": opens}, 5)
    assert list(outcomes) == ["a", "b"]
    assert all(isinstance(outcome, Answered) for outcome in outcomes.values())


async def test_a_stalled_source_costs_its_deadline_and_nothing_else() -> None:
    began = perf_counter()
    outcomes = await gather({"stalled": road("stalled", after=anyio.Event()), "quick": road("quick")}, 0.05)
    took = perf_counter() - began

    stalled = outcomes["stalled"]
    assert isinstance(stalled, Failed)
    assert (stalled.source, stalled.reason) == ("stalled", "timed out")
    assert stalled.after_ms >= 50
    assert isinstance(outcomes["quick"], Answered)
    assert took < 1


async def test_a_source_that_fails_is_a_value_with_its_reason() -> None:
    outcomes = await gather({"a": road("a", error=Unavailable("connection refused")), "b": road("b")}, 5)
    assert isinstance(outcomes["a"], Failed)
    assert outcomes["a"].reason == "connection refused"
    assert isinstance(outcomes["b"], Answered)


async def test_a_defect_in_one_source_is_logged_and_spares_the_others(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        outcomes = await gather({"a": road("a", error=ZeroDivisionError("secret")), "b": road("b")}, 5)
    assert isinstance(outcomes["a"], Failed)
    assert outcomes["a"].reason == "internal error"
    assert isinstance(outcomes["b"], Answered)
    assert "ZeroDivisionError" in caplog.text


async def test_a_source_that_is_slow_to_be_cancelled_costs_no_more() -> None:
    released = anyio.Event()

    async def stubborn() -> Ranking:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await released.wait()
        raise AssertionError

    began = perf_counter()
    outcomes = await gather({"stubborn": stubborn, "quick": road("quick")}, 0.05)
    assert perf_counter() - began < 1
    assert isinstance(outcomes["stubborn"], Failed)
    assert isinstance(outcomes["quick"], Answered)
    released.set()


async def test_who_hangs_up_frees_the_sources() -> None:
    asked, freed = anyio.Event(), anyio.Event()

    async def waits() -> Ranking:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            freed.set()
        raise AssertionError

    async with anyio.create_task_group() as group:
        group.start_soon(gather, {"a": waits}, 60)
        await asked.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        await freed.wait()
