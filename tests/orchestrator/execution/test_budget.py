"""Every fraction of time, on a virtual clock: each test stalls one stage and checks when the next one begins."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from threading import Event
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engine import EmbeddedIndex
from adapters.model.filter import Exists
from orchestrator.execution import budget
from orchestrator.execution.budget import Deadline, sources_timeout_s
from orchestrator.execution.stage_results import TIMED_OUT, AllSourcesFailed, Failed
from orchestrator.results.tokens import Measure
from orchestrator.retrieval.circuit_breakers import CircuitBreakers
from orchestrator.schema.hits import ContextText
from orchestrator.schema.search import Like, SearchResponse
from orchestrator.service.admission import Admission
from orchestrator.service.errors import Overloaded
from tests import virtual_clock
from tests.conftest import vector_record
from tests.orchestrator.services import empty_index, search, search_service
from tests.orchestrator.timed_request import TimedRequest

TESTED = {
    "ALL_SOURCES", "FIRST_STAGE", "COLLECTIONS", "ENTITY_LOOKUP", "EXPANSION", "BOOSTS", "RERANK", "EXPLAIN",
    "NEIGHBORS", "CONTEXT", "FACETS", "LIKENESS", "WRITES", "EXPECTED_WAIT", "MAX_WAIT", "BLAMED_TIMEOUT",
    "NEXT_STORE", "INTERLEAVING",
}  # fmt: skip
"""Every fraction has a test below; that of ``NEXT_STORE`` is in ``tests/orchestrator/results/test_hydration.py``, and
that of ``INTERLEAVING`` in ``tests/orchestrator/http/test_interleaving.py``."""


def test_every_fraction_of_time_is_tested() -> None:
    fractions = {name for name, value in vars(budget).items() if name.isupper() and not name.startswith("_")}
    assert fractions == TESTED
    assert all(0 < getattr(budget, name) <= 1 for name in fractions)


@pytest.fixture
def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    index.write_blocking(
        [vector_record(id_, "Alpha", seed=1, parent_id=f"p{id_}", chunk_index=1) for id_ in ("a", "b")]
    )
    return index


def failures(response: SearchResponse) -> list[tuple[str, str]]:
    return [(each.source, each.reason) for each in response.degraded]


exactly = pytest.approx


def test_the_sources_get_four_fifths_of_the_request(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector", "graph", "keyword")
    with pytest.raises(AllSourcesFailed):
        request.run(mode="hybrid", fusion="rrf(k=60)")
    assert request.ended_at_s == exactly(0.8)


def test_a_write_is_waited_for_during_half_of_the_request(index: EmbeddedIndex) -> None:
    """Not on a virtual clock: files are read in a thread meanwhile."""
    service = search_service(index, clock=perf_counter)
    service.clock = perf_counter
    service.shows = lambda _: False
    response = asyncio.run(search(service, "alpha", min_generation=7, timeout_ms=400))
    assert response.took_ms >= 200
    assert ("snapshot", "generation 7 is not in every source after 200 ms") in failures(response)


def test_tokens_are_counted_in_the_time_that_is_left(index: EmbeddedIndex) -> None:
    """Not on a virtual clock: they are counted in a thread."""
    is_over = Event()
    service = search_service(index, clock=perf_counter)
    service.clock = perf_counter
    service.measure = Measure(lambda text: [len(text)] if is_over.wait(30) else [])
    try:
        response = asyncio.run(search(service, "alpha", format="context", timeout_ms=400))
        of_hits = asyncio.run(search(service, "alpha", max_tokens=100, timeout_ms=400))
    finally:
        is_over.set()
    assert response.took_ms >= 390
    assert ("context", "timed out") in failures(response)
    assert response.context == ContextText("", 0, 0, cut=True)
    assert [hit.text for hit in of_hits.hits] == ["", ""]


def test_counting_values_gets_four_fifths_of_the_time(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "facets")
    response = request.run(mode="hybrid", fusion="rrf(k=60)", facets={"tags": 5})
    assert failures(response) == [("facets", "timed out")]
    assert (response.facets, [hit.id for hit in response.hits]) == ({}, ["a", "b"])
    assert request.ended_at_s == exactly(0.8)


def test_reading_what_the_hits_are_like_gets_a_fifth_of_the_request(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "neighbors")
    with pytest.raises(AllSourcesFailed, match="documents: timed out"):
        request.run("", like=Like(("a",)))
    assert request.ended_at_s == exactly(0.2)


def test_listing_gets_four_fifths_of_the_request(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "listing")
    with pytest.raises(AllSourcesFailed, match="documents: timed out"):
        request.run("", filter=Exists("id"))
    assert request.ended_at_s == exactly(0.8)


def test_the_setting_of_the_sources_is_a_limit_too(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector", "graph", "keyword")
    with pytest.raises(AllSourcesFailed):
        request.run(mode="hybrid", fusion="rrf(k=60)", settings={"source_timeout_ms": 120})
    assert request.ended_at_s == exactly(0.12)
    assert sources_timeout_s(1_000, 60_000) == 0.8
    assert sources_timeout_s(1_000, 120) == 0.12


def test_the_first_of_two_stages_gets_three_fifths_of_the_sources_time(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector")
    response = request.run(mode="hybrid")
    assert request.called_at_s["graph"] == exactly(0.8 * 0.6)
    assert failures(response) == [("vector", "timed out")]
    assert request.ended_at_s == exactly(0.8 * 0.6)


def test_a_single_stage_gets_all_of_the_sources_time(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector")
    request.run(mode="hybrid", fusion="rrf(k=60)")
    assert request.called_at_s["graph"] == 0.0
    assert request.called_at_s["documents"] == exactly(0.8)


def test_the_second_stage_gets_the_rest_of_the_sources_time(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector", "graph")
    response = request.run(mode="hybrid")
    assert failures(response) == [("vector", "timed out"), ("graph", "timed out")]
    assert request.called_at_s["documents"] == exactly(0.8)


def test_the_entity_lookup_gets_three_tenths_of_the_sources_time_that_is_left(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "entity lookup")
    response = request.run(mode="auto")
    assert request.called_at_s["graph"] == exactly(0.8 * 0.3)
    assert response.degraded == ()


def test_the_names_of_the_collections_get_a_fifth_of_the_time(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "collections")
    response = request.run(mode="hybrid", fusion="rrf(k=60)")
    assert request.called_at_s["vector"] == exactly(0.2)
    assert failures(response) == [("collections", "timed out")]
    assert [hit.id for hit in response.hits] == ["a", "b"]


def test_expansion_gets_three_tenths_of_its_stage(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "expansion")
    response = request.run(mode="keyword")
    assert request.called_at_s["keyword"] == exactly(0.8 * 0.3)
    assert failures(response) == [("expansion", "timed out")]
    first_of_two = TimedRequest(index, "expansion")
    first_of_two.run(mode="hybrid")
    assert first_of_two.called_at_s["keyword"] == exactly(0.8 * 0.6 * 0.3)


@pytest.mark.parametrize(("stalled", "left_s"), [((), 1.0), (("vector",), 0.2)])
def test_a_boost_gets_half_of_the_time_that_is_left(
    index: EmbeddedIndex, stalled: tuple[str, ...], left_s: float
) -> None:
    request = TimedRequest(index, "boosts", *stalled)
    response = request.run(mode="hybrid", fusion="rrf(k=60)", boosts={"centrality": True})
    assert request.called_at_s["boosts"] == exactly(1.0 - left_s)
    assert request.called_at_s["documents"] == exactly(1.0 - left_s * 0.5)
    assert failures(response)[-1] == ("boosts", "timed out")


@pytest.mark.parametrize(("stalled", "left_s"), [((), 1.0), (("vector",), 0.2)])
def test_the_reranker_gets_four_fifths_of_the_time_that_is_left(
    index: EmbeddedIndex, stalled: tuple[str, ...], left_s: float
) -> None:
    request = TimedRequest(index, "rerank", *stalled)
    response = request.run(mode="hybrid", fusion="rrf(k=60)", rerank=True, neighbors=1)
    assert request.called_at_s["rerank"] == exactly(1.0 - left_s)
    assert request.called_at_s["neighbors"] == exactly(1.0 - left_s + left_s * 0.8)
    assert failures(response)[-1] == ("rerank", "timed out")


def test_neighbouring_chunks_get_all_of_the_time_that_is_left(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector", "neighbors")
    response = request.run(mode="hybrid", fusion="rrf(k=60)", neighbors=1)
    assert request.called_at_s["neighbors"] == exactly(0.8)
    assert request.ended_at_s == exactly(1.0)
    assert failures(response)[-1] == ("neighbors", "timed out")
    assert [hit.id for hit in response.hits] == ["a", "b"]


def test_the_explanation_gets_all_of_the_time_that_is_left(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector", "explain")
    response = request.run(mode="hybrid", fusion="rrf(k=60)", explain=True)
    assert request.called_at_s["explain"] == exactly(0.8)
    assert request.ended_at_s == exactly(1.0)
    assert failures(response)[-1] == ("explain", "timed out")
    assert not response.explain
    assert [hit.id for hit in response.hits] == ["a", "b"]


def test_the_documents_get_all_of_the_time_that_is_left(index: EmbeddedIndex) -> None:
    request = TimedRequest(index, "vector", "documents")
    with pytest.raises(AllSourcesFailed, match="documents: timed out"):
        request.run(mode="hybrid", fusion="rrf(k=60)")
    assert request.ended_at_s == exactly(1.0)


def test_a_request_never_takes_longer_than_its_time_limit_whatever_stalls(index: EmbeddedIndex) -> None:
    """Stage 1 until 0.48, stage 2 until 0.8, the boost until 0.9, the reranker until 0.98, the rest until 1."""
    stalled = ("vector", "graph", "entity lookup", "boosts", "rerank", "neighbors", "explain")
    request = TimedRequest(index, *stalled)
    response = request.run(mode="auto", boosts={"centrality": True}, rerank=True, neighbors=1, explain=True)
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert [name for name, _ in failures(response)] == ["vector", "graph", "boosts", "rerank", "neighbors", "explain"]
    assert request.called_at_s["graph"] == exactly(0.48)
    assert request.called_at_s["boosts"] == exactly(0.8)
    assert request.called_at_s["rerank"] == exactly(0.9)
    assert request.called_at_s["neighbors"] == exactly(0.98)
    # Nothing is left for the explanation, which gets the millisecond in which a ready result can be taken.
    assert request.ended_at_s == exactly(1.0, abs=0.002)


def test_a_request_is_rejected_if_its_expected_wait_is_more_than_half_of_its_time() -> None:

    async def play() -> None:
        loop = asyncio.get_running_loop()
        admission = Admission(1, 10, loop.time)
        for _ in range(300):  # until the mean service time is 1 s
            async with admission.slot("a", 60):
                await asyncio.sleep(1)
        async with admission.slot("a", 60):  # half of its time is left on average
            await asyncio.sleep(0.3)  # a request that came sooner would be one of a burst
            assert isinstance(admission.would_reject("b", 0.5 / 0.5 - 0.001), Overloaded)
            assert admission.would_reject("b", 0.5 / 0.5 + 0.001) is None

    virtual_clock.run(play())


def test_a_waiting_request_is_rejected_after_three_quarters_of_its_time() -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        admission = Admission(1, 10, loop.time)
        async with admission.slot("a", 60):
            with pytest.raises(Overloaded):
                async with admission.slot("b", 2.0):
                    raise AssertionError
            assert loop.time() == exactly(2.0 * 0.75)

    virtual_clock.run(play())


@pytest.mark.parametrize(("after_ms", "state"), [(49.9, "closed"), (50.0, "open")])
def test_a_source_is_blamed_for_a_timeout_after_half_of_its_usual_time(after_ms: float, state: str) -> None:
    breakers = CircuitBreakers(1, 1.0, 0.1, lambda: 0.0)
    breakers.split(["vector"])
    breakers.record({"vector": Failed("vector", TIMED_OUT, after_ms)})
    assert breakers.states()["vector"] == state


times = st.floats(0, 1e6, allow_subnormal=False)


@given(times, times, times, st.floats(0.001, 1), st.floats(0.001, 1e6))
def test_a_stage_never_ends_after_the_request(
    start: float, limit_s: float, spent_s: float, fraction: float, max_s: float
) -> None:
    now = [start]
    request = Deadline.after(limit_s, lambda: now[0])
    now[0] += spent_s
    stage = request.within(fraction, max_s)
    assert stage.clock is request.clock
    rounding = 4 * math.ulp(now[0] + limit_s)  # clocks count from any origin
    assert 0.001 <= stage.remaining_s() <= max(request.remaining_s(), 0.001) + rounding
    assert stage.remaining_s() <= max(max_s, 0.001) + rounding


def test_a_stage_gets_a_fraction_of_the_time_that_is_left_when_it_begins() -> None:
    now = [10.0]
    request = Deadline.after(1.0, lambda: now[0])
    now[0] = 10.5
    assert request.remaining_s() == 0.5
    assert request.within(0.5).remaining_s() == 0.25
    assert request.within(0.5, 0.1).remaining_s() == exactly(0.1)
    now[0] = 12.0
    assert request.remaining_s() == 0.001
