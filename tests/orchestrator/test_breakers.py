"""A source that keeps failing costs nobody anything, and is back soon after it is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Query, Rejected, Unavailable
from adapters.embedded import Library
from fusion import Ranking
from orchestrator.breakers import Breakers
from orchestrator.outcome import AllSourcesFailed
from tests.conftest import entry
from tests.orchestrator.engines import Stalled, ask, engine, opened

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Fails until it is mended."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.asked = 0

    async def search(self, query: Query) -> Ranking:
        self.asked += 1
        if self.error:
            raise self.error
        return Ranking("vector", ("a",), (1.0,))


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    await made.write([entry("a", "Alpha Centauri is a star", seed=1)], ())
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_source_that_fails_again_and_again_is_left_alone_and_tried_again(
    library: Library, clock: Clock
) -> None:
    vector = Source(Unavailable("away"))
    breakers = Breakers(3, 1.0, 5.0, clock)
    made = engine(library, breakers=breakers, vector=vector)
    for _ in range(10):
        answer = await ask(made, mode="hybrid")
        assert [each.source for each in answer.degraded] == ["vector"]
        assert [hit.id for hit in answer.hits] == ["a"]
    assert vector.asked == 3
    assert "left alone" in answer.degraded[0].reason
    assert breakers.states()["vector"] == "open"
    clock.now = 1.0
    await ask(made, mode="hybrid")  # tried once, and still away
    await ask(made, mode="hybrid")
    assert vector.asked == 4
    vector.error = None
    clock.now = 2.0
    answers = [await ask(made, mode="hybrid") for _ in range(3)]
    assert [answer.degraded for answer in answers] == [()] * 3
    assert vector.asked == 7


async def test_where_all_are_left_alone_the_refusal_comes_at_once(library: Library, clock: Clock) -> None:
    broken = {source: Source(Unavailable("away")) for source in ("vector", "graph", "keyword")}
    made = engine(library, breakers=Breakers(1, 1.0, 5.0, clock), **broken)
    for _ in range(2):
        with pytest.raises(AllSourcesFailed) as raised:
            await ask(made, mode="hybrid", fusion="rrf(k=60)")
    assert [failed.source for failed in raised.value.failures] == ["vector", "graph", "keyword"]
    assert all("left alone" in failed.reason for failed in raised.value.failures)


async def test_what_a_request_is_to_blame_for_is_not_held_against_a_source(library: Library, clock: Clock) -> None:
    vector = Source(Rejected("no such thing"))
    made = engine(library, breakers=Breakers(1, 1.0, 5.0, clock), vector=vector)
    for _ in range(3):
        await ask(made, mode="hybrid")
    assert vector.asked == 3


async def test_nor_is_being_late_where_there_was_no_time(library: Library, clock: Clock) -> None:
    breakers = Breakers(1, 1.0, 5.0, clock)
    made = engine(library, breakers=breakers, graph=Stalled())
    await ask(made, mode="hybrid", fusion="rrf(k=60)", timeout_ms=100)
    assert breakers.states()["graph"] == "closed"
    strict = Breakers(1, 1.0, 0.1, clock)
    late = engine(library, breakers=strict, graph=Stalled())
    await ask(late, mode="hybrid", fusion="rrf(k=60)", timeout_ms=100)
    assert strict.states()["graph"] == "open"
