"""Searches that wait, under one deadline."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from fusion.columns import Ranking
from orchestrator.execution.stage_results import Answered, Failed, Outcome
from orchestrator.retrieval.deadline_tasks import DeadlineTasks
from tests import virtual_clock

pytestmark = pytest.mark.anyio


async def search_of(source: str, after: anyio.Event | None = None, sets: anyio.Event | None = None) -> Outcome:
    if sets:
        sets.set()
    if after:
        await after.wait()
    return Answered(Ranking.of_ids(source, ("a",), (1.0,)))


async def test_outcomes_are_in_the_order_of_the_searches_and_not_in_that_of_arrival() -> None:
    first = anyio.Event()
    with DeadlineTasks().started({"a": search_of("a", after=first), "b": search_of("b", sets=first)}, 5) as tasks:
        outcomes = await tasks.outcomes()
    assert list(outcomes) == ["a", "b"]
    assert all(isinstance(outcome, Answered) for outcome in outcomes.values())


async def test_without_a_search_there_is_no_outcome() -> None:
    with DeadlineTasks().started({}, 5) as tasks:
        assert await tasks.outcomes() == {}


def test_a_stalled_search_costs_its_deadline_and_nothing_else() -> None:
    async def play() -> tuple[dict[str, Outcome], float]:
        start = asyncio.get_running_loop().time()
        stalled = search_of("stalled", after=anyio.Event())
        with DeadlineTasks().started({"stalled": stalled, "quick": search_of("quick")}, 0.05) as tasks:
            return await tasks.outcomes(), asyncio.get_running_loop().time() - start

    outcomes, took_s = virtual_clock.run(play())
    stalled = outcomes["stalled"]
    assert isinstance(stalled, Failed)
    assert (stalled.source, stalled.reason) == ("stalled", "timed out")
    assert isinstance(outcomes["quick"], Answered)
    assert took_s == pytest.approx(0.05)


def test_what_is_done_meanwhile_counts_against_the_deadline() -> None:
    async def play() -> float:
        start = asyncio.get_running_loop().time()
        with DeadlineTasks().started({"stalled": search_of("stalled", after=anyio.Event())}, 0.05) as tasks:
            await asyncio.sleep(0.04)
            await tasks.outcomes()
        return asyncio.get_running_loop().time() - start

    assert virtual_clock.run(play()) == pytest.approx(0.05)


def test_a_search_that_is_slow_to_be_cancelled_costs_no_more() -> None:
    async def play() -> tuple[dict[str, Outcome], float]:
        released = anyio.Event()

        async def stubborn() -> Outcome:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await released.wait()
            raise AssertionError

        start = asyncio.get_running_loop().time()
        try:
            with DeadlineTasks().started({"stubborn": stubborn(), "quick": search_of("quick")}, 0.05) as tasks:
                outcomes = await tasks.outcomes()
            return outcomes, asyncio.get_running_loop().time() - start
        finally:
            released.set()

    outcomes, took_s = virtual_clock.run(play())
    assert took_s == pytest.approx(0.05)
    assert isinstance(outcomes["stubborn"], Failed)
    assert isinstance(outcomes["quick"], Answered)


async def test_a_client_that_disconnects_frees_the_sources() -> None:
    searched, freed = anyio.Event(), anyio.Event()

    async def waits() -> Outcome:
        searched.set()
        try:
            await anyio.sleep_forever()
        finally:
            freed.set()
        raise AssertionError

    async def request() -> None:
        with DeadlineTasks().started({"a": waits()}, 60) as tasks:
            await tasks.outcomes()

    async with anyio.create_task_group() as group:
        group.start_soon(request)
        await searched.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        await freed.wait()
