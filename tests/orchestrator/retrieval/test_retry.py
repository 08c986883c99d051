"""Retries of a source: only after a lost connection or an unreadable reply, and only within the budget."""

from __future__ import annotations

import asyncio

import pytest

from adapters import AdapterError, BadResponse, Rejected, TimedOut, Unavailable
from adapters.model.filter import And
from adapters.ports import SourceQuery
from fusion.columns import Ranking
from orchestrator.retrieval.retry import RetryBudget, RetryingRetriever
from tests import virtual_clock
from tests.conftest import SCOPE

pytestmark = pytest.mark.anyio

QUERY = SourceQuery("alpha", 10, SCOPE, And(()), And(()))
STALL = "stall"


class ScriptedSource:
    """A source with one step for each search: a ranking, an error, or no answer at all."""

    def __init__(self, *steps: Ranking | Exception | str) -> None:
        self._steps = list(steps)
        self.searches = self.cancelled = 0

    async def search(self, query: SourceQuery) -> Ranking:
        self.searches += 1
        match self._steps.pop(0):
            case Ranking() as ranking:
                return ranking
            case Exception() as error:
                raise error
            case _:
                try:
                    await asyncio.Event().wait()
                finally:
                    self.cancelled += 1
        raise AssertionError


def ranking_of(id_: str) -> Ranking:
    return Ranking.of_ids("keyword", (id_,), (1.0,))


@pytest.mark.parametrize("error", [Unavailable("connection reset"), BadResponse("half a reply")])
async def test_a_lost_search_is_repeated(error: AdapterError) -> None:
    source = ScriptedSource(error, ranking_of("a"))
    assert (await RetryingRetriever(source, RetryBudget(0.1)).search(QUERY)).ids == ("a",)


@pytest.mark.parametrize("error", [Rejected("no"), TimedOut("too late"), ZeroDivisionError()])
async def test_an_error_that_would_come_again_is_not_retried(error: Exception) -> None:
    source = ScriptedSource(error, ranking_of("a"))
    with pytest.raises(type(error)):
        await RetryingRetriever(source, RetryBudget(1.0)).search(QUERY)
    assert source.searches == 1


@pytest.mark.parametrize(("ratio", "max_searches"), [(0.0, 100), (0.1, 112), (1.0, 200)])
async def test_a_source_that_is_away_gets_few_retries(ratio: float, max_searches: int) -> None:
    source = ScriptedSource(*[Unavailable("away")] * 300)
    retrying = RetryingRetriever(source, RetryBudget(ratio))
    for _ in range(100):
        with pytest.raises(Unavailable):
            await retrying.search(QUERY)
    assert max_searches - 12 <= source.searches <= max_searches


async def test_a_bounded_number_of_retries_is_saved_up() -> None:
    budget = RetryBudget(1.0)
    for _ in range(1_000):
        budget.deposit()
    assert [budget.withdraw() for _ in range(12)].count(True) == 10


async def test_the_error_of_the_retry_is_raised() -> None:
    source = ScriptedSource(Unavailable("first"), Unavailable("second"), ranking_of("a"))
    with pytest.raises(Unavailable, match="second"):
        await RetryingRetriever(source, RetryBudget(1.0)).search(QUERY)
    assert source.searches == 2


@pytest.mark.parametrize("steps", [[STALL], [Unavailable("reset"), STALL]])
def test_a_slow_search_is_waited_for_and_not_repeated(steps: list[Exception | str]) -> None:
    """No second search beside the first one: the deadline is the caller's, and cancels the search."""

    async def play() -> None:
        source = ScriptedSource(*steps, ranking_of("a"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(RetryingRetriever(source, RetryBudget(1.0)).search(QUERY), 3_600)
        assert (source.searches, source.cancelled) == (len(steps), 1)

    virtual_clock.run(play())
