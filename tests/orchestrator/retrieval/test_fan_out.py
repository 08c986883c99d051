"""All searches of a stage at once, under one deadline."""

from __future__ import annotations

import asyncio
import logging

import anyio
import pytest

from adapters import Rejected, Unavailable
from fusion import Ranking
from orchestrator.retrieval.fan_out import FanOut, Search
from orchestrator.stages.stage_results import Answered, Failed, Outcome
from tests import virtual_clock

pytestmark = pytest.mark.anyio


def search_of(
    source: str, after: anyio.Event | None = None, error: Exception | None = None, waits: bool = True
) -> Search:
    async def search() -> Ranking:
        if after:
            await after.wait()
        if error:
            raise error
        return Ranking.of_ids(source, ("a",), (1.0,))

    return Search(search, waits)


async def test_outcomes_are_in_the_order_of_the_searches_and_not_in_that_of_arrival() -> None:
    first = anyio.Event()

    async def sets() -> Ranking:
        first.set()
        return Ranking.of_ids("b", (), ())

    outcomes = await FanOut().run({"a": search_of("a", after=first), "b": Search(sets)}, 5)
    assert list(outcomes) == ["a", "b"]
    assert all(isinstance(outcome, Answered) for outcome in outcomes.values())


async def timed(searches: dict[str, Search], timeout_s: float) -> tuple[dict[str, Outcome], float]:
    """The outcomes, and the seconds of the event loop until they were there."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    return await FanOut().run(searches, timeout_s), loop.time() - start


def test_a_stalled_source_costs_its_deadline_and_nothing_else() -> None:
    async def play() -> tuple[dict[str, Outcome], float]:
        return await timed({"stalled": search_of("stalled", after=anyio.Event()), "quick": search_of("quick")}, 0.05)

    outcomes, took_s = virtual_clock.run(play())
    stalled = outcomes["stalled"]
    assert isinstance(stalled, Failed)
    assert (stalled.source, stalled.reason) == ("stalled", "timed out")
    assert isinstance(outcomes["quick"], Answered)
    assert took_s == pytest.approx(0.05)


async def test_a_source_that_fails_is_a_value_with_its_reason() -> None:
    outcomes = await FanOut().run(
        {"a": search_of("a", error=Unavailable("connection refused")), "b": search_of("b")}, 5
    )
    assert isinstance(outcomes["a"], Failed)
    assert outcomes["a"].reason == "connection refused"
    assert isinstance(outcomes["b"], Answered)


@pytest.mark.parametrize(
    ("error", "caused_by_request"), [(Rejected("too long"), True), (Unavailable("away"), False), (KeyError(), False)]
)
async def test_only_a_rejection_is_caused_by_the_request(error: Exception, caused_by_request: bool) -> None:
    outcome = (await FanOut().run({"a": search_of("a", error=error)}, 5))["a"]
    assert isinstance(outcome, Failed)
    assert outcome.caused_by_request is caused_by_request


async def test_a_defect_in_one_source_is_logged_and_does_not_fail_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        outcomes = await FanOut().run({"a": search_of("a", error=ZeroDivisionError("secret")), "b": search_of("b")}, 5)
    assert isinstance(outcomes["a"], Failed)
    assert outcomes["a"].reason == "internal error"
    assert isinstance(outcomes["b"], Answered)
    assert "ZeroDivisionError" in caplog.text


def test_a_source_that_is_slow_to_be_cancelled_costs_no_more() -> None:
    async def play() -> tuple[dict[str, Outcome], float]:
        released = anyio.Event()

        async def stubborn() -> Ranking:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await released.wait()
            raise AssertionError

        try:
            return await timed({"stubborn": Search(stubborn), "quick": search_of("quick")}, 0.05)
        finally:
            released.set()

    outcomes, took_s = virtual_clock.run(play())
    assert took_s == pytest.approx(0.05)
    assert isinstance(outcomes["stubborn"], Failed)
    assert isinstance(outcomes["quick"], Answered)


async def test_a_search_that_waits_for_nothing_runs_while_the_others_wait() -> None:
    finished = anyio.Event()

    async def sets() -> Ranking:
        finished.set()
        return Ranking.of_ids("local", (), ())

    searches = {"remote": search_of("remote", after=finished), "local": Search(sets, waits=False)}
    outcomes = await FanOut().run(searches, 5)
    assert list(outcomes) == ["remote", "local"]
    assert all(isinstance(outcome, Answered) for outcome in outcomes.values())


async def test_other_requests_have_a_turn_before_each_search_that_waits_for_nothing() -> None:
    turns: list[str] = []

    def computing(source: str) -> Search:
        async def search() -> Ranking:
            turns.append(source)
            asyncio.get_running_loop().call_soon(turns.append, "another request")
            return Ranking.of_ids(source, (), ())

        return Search(search, waits=False)

    await FanOut().run({"a": computing("a"), "b": computing("b")}, 5)
    assert turns == ["a", "another request", "b"]


async def test_a_search_that_waits_for_nothing_may_give_others_a_turn() -> None:
    turns: list[str] = []

    async def search() -> Ranking:
        for part in ("first", "second"):
            turns.append(part)
            asyncio.get_running_loop().call_soon(turns.append, "another request")
            await asyncio.sleep(0)
        return Ranking.of_ids("a", (), ())

    outcomes = await FanOut().run({"a": Search(search, waits=False)}, 5)
    assert isinstance(outcomes["a"], Answered)
    assert turns == ["first", "another request", "second", "another request"]


async def test_a_search_that_waits_although_it_should_not_is_a_defect(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = await FanOut().run({"a": search_of("a", after=anyio.Event(), waits=False), "b": search_of("b")}, 5)
    assert outcomes["a"] == Failed("a", "internal error", 0.0)
    assert isinstance(outcomes["b"], Answered)
    assert "the a source waited" in caplog.text


async def test_a_client_that_disconnects_frees_the_sources() -> None:
    searched, freed = anyio.Event(), anyio.Event()

    async def waits() -> Ranking:
        searched.set()
        try:
            await anyio.sleep_forever()
        finally:
            freed.set()
        raise AssertionError

    async with anyio.create_task_group() as group:
        group.start_soon(FanOut().run, {"a": Search(waits)}, 60)
        await searched.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        await freed.wait()
