"""A source that keeps failing is skipped, and is searched again soon after it works again."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Rejected, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.ports import SourceQuery
from fusion.columns import Ranking
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.retrieval.circuit_breakers import CircuitBreakers
from tests.clock import Clock
from tests.conftest import vector_record
from tests.orchestrator.services import StalledSource, empty_index, search, search_service

pytestmark = pytest.mark.anyio


class RepairableSource:
    """Fails until it has no error any more."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.searches = 0

    async def search(self, query: SourceQuery) -> Ranking:
        self.searches += 1
        if self.error:
            raise self.error
        return Ranking.of_ids("vector", ("a",), (1.0,))


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    await index.write([vector_record("a", "Alpha Centauri is a star", seed=1)], ())
    return index


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_source_that_keeps_failing_is_skipped_and_tried_again(index: EmbeddedIndex, clock: Clock) -> None:
    vector = RepairableSource(Unavailable("away"))
    breakers = CircuitBreakers(3, 1.0, 5.0, clock)
    service = search_service(index, breakers=breakers, vector=vector)
    for _ in range(10):
        response = await search(service, mode="hybrid")
        assert [each.source for each in response.degraded] == ["vector"]
        assert [hit.id for hit in response.hits] == ["a"]
    assert vector.searches == 3
    assert "circuit open" in response.degraded[0].reason
    assert breakers.states()["vector"] == "open"
    clock.now = 1.0
    await search(service, mode="hybrid")  # tried once, and still away
    await search(service, mode="hybrid")
    assert vector.searches == 4
    vector.error = None
    clock.now = 2.0
    responses = [await search(service, mode="hybrid") for _ in range(3)]
    assert [response.degraded for response in responses] == [()] * 3
    assert vector.searches == 7


async def test_if_every_circuit_is_open_the_request_fails_at_once(index: EmbeddedIndex, clock: Clock) -> None:
    broken = {source: RepairableSource(Unavailable("away")) for source in ("vector", "graph", "keyword")}
    service = search_service(index, breakers=CircuitBreakers(1, 1.0, 5.0, clock), **broken)
    for _ in range(2):
        with pytest.raises(AllSourcesFailed) as raised:
            await search(service, mode="hybrid", fusion="rrf(k=60)")
    assert [failed.source for failed in raised.value.failures] == ["vector", "graph", "keyword"]
    assert all("circuit open" in failed.reason for failed in raised.value.failures)
    assert [source.searches for source in broken.values()] == [1, 1, 1]


async def test_an_error_that_the_request_caused_does_not_open_the_circuit(index: EmbeddedIndex, clock: Clock) -> None:
    vector = RepairableSource(Rejected("no such thing"))
    service = search_service(index, breakers=CircuitBreakers(1, 1.0, 5.0, clock), vector=vector)
    for _ in range(3):
        await search(service, mode="hybrid")
    assert vector.searches == 3


async def test_a_timeout_after_too_little_time_does_not_open_the_circuit(index: EmbeddedIndex, clock: Clock) -> None:
    breakers = CircuitBreakers(1, 1.0, 5.0, clock)
    service = search_service(index, breakers=breakers, graph=StalledSource())
    await search(service, mode="hybrid", fusion="rrf(k=60)", timeout_ms=100)
    assert breakers.states()["graph"] == "closed"
    strict = CircuitBreakers(1, 1.0, 0.1, clock)
    service = search_service(index, breakers=strict, graph=StalledSource())
    await search(service, mode="hybrid", fusion="rrf(k=60)", timeout_ms=100)
    assert strict.states()["graph"] == "open"
