"""Second attempts at a source: only where the first was lost or is late, and only as far as the budget goes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adapters import AdapterError, BadResponse, Query, Record, Rejected, Scope, TimedOut, Unavailable
from adapters.filter import And
from fusion import Ranking
from orchestrator.again import Again, Budget, Spared
from tests.conftest import SCOPE, entry

pytestmark = pytest.mark.anyio

QUERY = Query("alpha", 10, SCOPE, And(()), And(()))
LATE = "late"


class Flaky:
    """A source that does one after the other of what it is told: answer, fail, or never come back."""

    def __init__(self, *steps: Ranking | Exception | str) -> None:
        self._steps = list(steps)
        self.asked = self.cancelled = 0

    async def search(self, query: Query) -> Ranking:
        self.asked += 1
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


def good(id_: str) -> Ranking:
    return Ranking("keyword", (id_,), (1.0,))


@pytest.mark.parametrize("error", [Unavailable("connection reset"), BadResponse("half an answer")])
async def test_what_was_lost_is_asked_for_again(error: AdapterError) -> None:
    source = Flaky(error, good("a"))
    assert (await Again(source, Budget(0.1), 0).search(QUERY)).ids == ("a",)


@pytest.mark.parametrize("error", [Rejected("no"), TimedOut("too late"), ZeroDivisionError()])
async def test_what_would_come_again_is_not(error: Exception) -> None:
    source = Flaky(error, good("a"))
    with pytest.raises(type(error)):
        await Again(source, Budget(1.0), 0).search(QUERY)
    assert source.asked == 1


@pytest.mark.parametrize(("share", "most"), [(0.0, 100), (0.1, 112), (1.0, 200)])
async def test_a_source_that_is_gone_is_not_asked_to_death(share: float, most: int) -> None:
    source = Flaky(*[Unavailable("gone")] * 300)
    again = Again(source, Budget(share), 0)
    for _ in range(100):
        with pytest.raises(Unavailable):
            await again.search(QUERY)
    assert most - 12 <= source.asked <= most


async def test_attempts_are_not_saved_up_without_end() -> None:
    budget = Budget(1.0)
    for _ in range(1_000):
        budget.earn()
    assert [budget.spend() for _ in range(12)].count(True) == 10


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([good("quick")], "quick"),
        ([LATE, good("second")], "second"),
        ([Unavailable("reset"), good("again")], "again"),
        ([LATE, Unavailable("reset")], None),
    ],
)
async def test_a_slow_attempt_is_overtaken(steps: Sequence[Ranking | Exception | str], found: str | None) -> None:
    source = Flaky(*steps)
    again = Again(source, Budget(1.0), after_s=0.01)
    if found:
        assert (await again.search(QUERY)).ids == (found,)
    else:  # both are waited for, as long as somebody waits
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(again.search(QUERY), 0.1)
    await asyncio.sleep(0)
    assert source.asked == len(steps)
    assert source.cancelled == steps.count(LATE)


async def test_without_a_budget_nothing_is_overtaken() -> None:
    source = Flaky(LATE, good("second"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Again(source, Budget(0.0), after_s=0.001).search(QUERY), 0.05)
    assert (source.asked, source.cancelled) == (1, 1)


class Store:
    """A store of documents: it gives them, fails, or never answers."""

    def __init__(self, text: str | None, error: Exception | None = None, most: int = 9) -> None:
        self._text, self._error, self._most = text, error, most
        self.asked = 0

    async def fetch(self, scope: Scope, ids: Sequence[str]) -> dict[str, Record]:
        self.asked += 1
        if self._error:
            raise self._error
        if self._text is None:
            await asyncio.Event().wait()
        return {id_: entry(id_, str(self._text)).record for id_ in ids[: self._most]}


@pytest.mark.parametrize("first", [Store("first"), Store(None, Unavailable("gone")), Store(None)])
async def test_documents_come_from_the_spare_store_where_the_first_cannot_give_them(first: Store) -> None:
    spare = Store("spare")
    found = await Spared(first, spare, lambda: True).fetch(SCOPE, ["a"])  # type: ignore[arg-type]
    well = first._text == "first"
    assert found["a"].document.text == ("first" if well else "spare")
    assert spare.asked == (not well)


async def test_a_spare_store_that_lacks_writes_is_not_asked() -> None:
    """What it holds may have become a secret since."""
    spare = Store("spare")
    with pytest.raises(Unavailable, match="gone"):
        await Spared(Store(None, Unavailable("gone")), spare, lambda: False).fetch(SCOPE, ["a"])  # type: ignore[arg-type]
    assert spare.asked == 0


async def test_a_spare_store_that_lacks_a_document_is_not_taken_at_its_word() -> None:
    first, spare = Store(None, Unavailable("gone")), Store("spare", most=1)
    with pytest.raises(Unavailable, match="gone"):
        await Spared(first, spare, lambda: True).fetch(SCOPE, ["a", "b"])  # type: ignore[arg-type]


async def test_with_neither_store_it_is_the_first_that_is_told_of() -> None:
    stores = Store(None, Unavailable("first is gone")), Store(None, Unavailable("spare is gone"))
    with pytest.raises(Unavailable, match="first is gone"):
        await Spared(*stores, lambda: True).fetch(SCOPE, ["a"])  # type: ignore[arg-type]
