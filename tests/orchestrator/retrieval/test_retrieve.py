"""Searching the sources of a plan: one stage or two, and what a failure does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import pytest
from msgspec.structs import replace

from adapters import AdapterError, Rejected, Unavailable
from adapters.model.filter import Eq, Filter
from adapters.model.sources import SOURCES
from adapters.ports import ImmediateRetriever, Retriever, Snapshot, SourceQuery, Vector
from fusion.columns import Candidates, Ranking
from fusion.joint_walk import JointWalk
from fusion.rank_fields import Ints
from fusion.sums import Fused
from orchestrator.execution.budget import Deadline
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import AllSourcesFailed, Retrieved
from orchestrator.planning.plan import Plan
from orchestrator.retrieval.circuit_breakers import CircuitBreakers
from orchestrator.retrieval.collections import CollectionSplitter
from orchestrator.retrieval.memo import Memo, MemoizedRetriever
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.retrieval.query_preparation import QueryPreparation
from orchestrator.retrieval.retrieve import Retrieval, same_top_document
from orchestrator.retrieval.source_call import SourceCall
from orchestrator.telemetry.spans import StageTimings
from tests import virtual_clock
from tests.conftest import SCOPE
from tests.orchestrator.services import (
    FailingSource,
    FixedEncoder,
    FixedSource,
    NoStaticEncoder,
    RecordingSource,
    StalledSource,
    plan_of,
    query_encoders,
    unit_tuple,
)

pytestmark = pytest.mark.anyio


class OneCollection:
    """A reader that knows one collection."""

    async def counts(self, field: str, condition: Filter) -> Mapping[str, int]:
        return {"documents": 2}


SNAPSHOT = Snapshot(SCOPE, 1, ("v", 1), documents=OneCollection())  # type: ignore[arg-type]


@dataclass
class Entities:
    """An entity lookup with a fixed answer, and its number of calls."""

    answer: bool | AdapterError | None = False
    calls: int = 0

    async def mentions_entity(self, query: SourceQuery) -> bool:
        self.calls += 1
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, AdapterError):
            raise self.answer
        return bool(self.answer)


class Sources:
    """Three sources, each with two documents unless given otherwise."""

    def __init__(
        self,
        entities: Entities | None = None,
        breakers: CircuitBreakers | None = None,
        immediate: Mapping[str, ImmediateRetriever] | None = None,
        encoders: QueryEncoders | None = None,
        **given: Retriever,
    ) -> None:
        retrievers: dict[str, Retriever] = {
            name: FixedSource(name, "a", "b") for name in ("vector", "graph", "keyword")
        }
        self.recorded = {name: RecordingSource(source) for name, source in (retrievers | given).items()}
        self.entities = entities
        breakers = breakers or CircuitBreakers(1, 1.0, 5.0, lambda: 0.0)
        calls = {}
        for source in SOURCES:
            lookup = entities if source.role == "graph" else None
            if immediate and source.name in immediate:
                calls[source.name] = SourceCall(source, immediate[source.name], lookup)
            else:
                chained = MemoizedRetriever(self.recorded[source.name], Memo(0.0, lambda: 0.0), lambda _: ())
                calls[source.name] = SourceCall(source, chained, lookup)
        preparation = QueryPreparation(encoders or query_encoders(), None)
        self._retrieval = Retrieval(calls, preparation, breakers, CollectionSplitter(Memo(0.0, lambda: 0.0)))

    async def retrieve(self, plan: Plan, timeout_s: float = 60.0) -> Retrieved:
        context = SearchContext(Deadline.after(60.0, asyncio.get_running_loop().time), StageTimings())
        return await self._retrieval.retrieve(plan.ranking, "use", SNAPSHOT, context, timeout_s)

    @property
    def searched(self) -> dict[str, int]:
        return {name: len(source.queries) for name, source in self.recorded.items() if source.queries}


def ids(retrieved: Retrieved) -> dict[str, tuple[str, ...]]:
    return {ranking.source: ranking.ids for ranking in retrieved.rankings}


def failures(retrieved: Retrieved) -> list[tuple[str, str]]:
    return [(each.source, each.reason) for each in retrieved.degraded]


AUTO = plan_of("a query", mode="auto")
HYBRID = plan_of("a query", mode="hybrid")
ONE_STAGE = plan_of("a query", mode="hybrid", fusion="rrf(k=60)")


class _Computing:
    """A source that waits for nothing, while another request arrives."""

    def __init__(self, name: str, iterations: list[str]) -> None:
        self._name = name
        self._iterations = iterations

    def search_now(self, query: SourceQuery) -> Ranking:
        self._iterations.append(self._name)
        asyncio.get_running_loop().call_soon(self._iterations.append, "another request")
        return Ranking.of_ids(self._name, (str(query.filter),), (1.0,))


async def test_other_requests_are_read_between_the_collections_of_a_search_that_waits_for_nothing() -> None:
    iterations: list[str] = []
    plan = plan_of("a query", mode="keyword")
    (call,) = plan.ranking.calls
    filters = tuple(Eq("collection", name) for name in "abc")
    several = replace(plan, ranking=replace(plan.ranking, calls=(replace(call, filters=filters),)))
    await Sources(immediate={"keyword": _Computing("keyword", iterations)}).retrieve(several)
    assert iterations == ["keyword", "another request"] * 2 + ["keyword"]


async def test_other_requests_are_read_before_each_stage_of_searches_that_wait_for_nothing() -> None:
    iterations: list[str] = []
    names = ("vector", "graph", "keyword")
    sources = Sources(immediate={name: _Computing(name, iterations) for name in names})
    plan = plan_of("a query", mode="hybrid", vector=unit_tuple(1))
    asyncio.get_running_loop().call_soon(iterations.append, "an earlier request")
    retrieved = await sources.retrieve(plan)
    assert list(ids(retrieved)) == ["vector", "graph", "keyword"]
    assert iterations[:3] == ["an earlier request", "vector", "keyword"]
    assert iterations[3:] == ["another request"] * 2 + ["graph"]


async def test_a_search_that_waits_for_nothing_runs_while_the_others_wait() -> None:
    searched = asyncio.Event()

    class Sets:
        def search_now(self, query: SourceQuery) -> Ranking:
            searched.set()
            return Ranking.of_ids("keyword", ("a",), (1.0,))

    class Waits(FixedSource):
        async def search(self, query: SourceQuery) -> Ranking:
            await searched.wait()
            return await super().search(query)

    retrieved = await Sources(immediate={"keyword": Sets()}, vector=Waits("vector", "a")).retrieve(ONE_STAGE)
    assert list(ids(retrieved)) == ["vector", "graph", "keyword"]


@pytest.mark.parametrize("is_immediate", [True, False])
async def test_a_defect_in_one_source_is_logged_and_does_not_fail_the_others(
    caplog: pytest.LogCaptureFixture, is_immediate: bool
) -> None:
    class Defective:
        def search_now(self, query: SourceQuery) -> Ranking:
            raise ZeroDivisionError("secret")

        async def search(self, query: SourceQuery) -> Ranking:
            return self.search_now(query)

    sources = Sources(immediate={"keyword": Defective()}) if is_immediate else Sources(keyword=Defective())
    retrieved = await sources.retrieve(HYBRID)
    assert failures(retrieved) == [("keyword", "internal error")]
    assert list(ids(retrieved)) == ["vector", "graph"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_request_that_arrives_is_rejected_before_a_query_is_encoded_on_the_event_loop() -> None:
    """A rejection needs three iterations of the event loop: one before the searches, and two before the encoding."""
    iterations: list[str] = []

    class Encoder(FixedEncoder):
        def encode(self, text: str) -> Vector:
            iterations.append("encoded")
            return super().encode(text)

    def iteration(number: int) -> None:
        iterations.append(f"iteration {number}")
        if number < 3:
            asyncio.get_running_loop().call_soon(iteration, number + 1)

    sources = Sources(
        immediate={"vector": _Computing("vector", [])}, encoders=QueryEncoders(Encoder(), NoStaticEncoder())
    )
    asyncio.get_running_loop().call_soon(iteration, 1)
    await sources.retrieve(plan_of("a query", mode="vector"))
    assert iterations == ["iteration 1", "iteration 2", "iteration 3", "encoded"]


def test_a_search_waits_only_if_the_model_has_to_run_in_a_thread() -> None:
    with ThreadPoolExecutor(1) as thread:
        encoders = QueryEncoders(FixedEncoder(), NoStaticEncoder(), thread=thread)
        preparation = QueryPreparation(encoders, None)
        vector = next(source for source in SOURCES if source.name == "vector")
        assert preparation.may_wait(vector, HYBRID.ranking)
        asyncio.run(encoders.encode(HYBRID.ranking.text, HYBRID.ranking.encoder, HYBRID.ranking.scope.tenant))
        assert not preparation.may_wait(vector, HYBRID.ranking)  # the vector is cached
        given = plan_of("another query", vector=unit_tuple(3))
        assert not preparation.may_wait(vector, given.ranking)


@pytest.mark.parametrize("plan", [HYBRID, ONE_STAGE])
async def test_all_sources_are_searched_once_and_returned_in_the_order_of_the_plan(plan: Plan) -> None:
    sources = Sources()
    retrieved = await sources.retrieve(plan)
    assert list(ids(retrieved)) == list(retrieved.searched) == ["vector", "graph", "keyword"]
    assert sources.searched == {"vector": 1, "graph": 1, "keyword": 1}
    assert (retrieved.encoder, retrieved.expansions, retrieved.degraded) == ("model", (), ())


async def test_every_query_has_what_the_plan_says() -> None:
    sources = Sources()
    await sources.retrieve(HYBRID)
    for name, source in sources.recorded.items():
        (query,) = source.queries
        ranking = HYBRID.ranking
        assert (query.text, query.depth, query.scope) == (ranking.text, ranking.depth, ranking.scope)
        assert (query.access, query.filter) == (ranking.access, ranking.filter)
        assert query.snapshot is SNAPSHOT
        assert (query.vector is not None) == (name == "vector")


async def test_the_sources_of_stage_2_start_from_the_seeds_of_stage_1() -> None:
    """``b`` is second for both text sources, ``a`` and ``c`` are first for one each and missing for the other."""
    sources = Sources(vector=FixedSource("vector", "a", "b"), keyword=FixedSource("keyword", "c", "b"))
    await sources.retrieve(HYBRID)
    assert set(sources.recorded["graph"].queries[0].seed_ids) == {"a", "b", "c"}
    assert sources.recorded["graph"].queries[0].seed_ids[0] == "b"  # found twice
    assert sources.recorded["vector"].queries[0].seeds is None


async def test_a_strategy_without_seeds_searches_everything_at_once() -> None:
    """Each source waits until all three are being searched: a second stage would never begin."""
    running = asyncio.Barrier(3)

    class WaitingSource(FixedSource):
        async def search(self, query: SourceQuery) -> Ranking:
            await running.wait()
            return await super().search(query)

    sources = Sources(**{name: WaitingSource(name, "a") for name in ("vector", "graph", "keyword")})
    async with asyncio.timeout(30):
        await sources.retrieve(ONE_STAGE)
    assert sources.recorded["graph"].queries[0].seeds is None


async def test_stage_2_begins_after_stage_1() -> None:
    order: list[str] = []

    class OrderedSource(FixedSource):
        def __init__(self, name: str) -> None:
            super().__init__(name, "a")
            self.name = name

        async def search(self, query: SourceQuery) -> Ranking:
            for _ in range(3):
                await asyncio.sleep(0)
            order.append(self.name)
            return await super().search(query)

    await Sources(**{name: OrderedSource(name) for name in ("vector", "graph", "keyword")}).retrieve(HYBRID)
    assert sorted(order[:2]) == ["keyword", "vector"]
    assert order[2] == "graph"


async def test_stage_2_is_skipped_if_the_text_sources_agree_and_no_entity_is_mentioned() -> None:
    sources = Sources(Entities(False))
    retrieved = await sources.retrieve(AUTO)
    assert list(ids(retrieved)) == list(retrieved.searched) == ["vector", "keyword"]
    assert "graph" not in sources.searched
    assert retrieved.degraded == ()


@pytest.mark.parametrize(
    ("plan", "entities", "sources", "lookup_count"),
    [
        (HYBRID, Entities(False), {}, 0),
        (AUTO, Entities(True), {}, 1),
        (AUTO, Entities(Unavailable("away")), {}, 1),
        (AUTO, None, {}, 0),
        (AUTO, Entities(False), {"keyword": FixedSource("keyword", "b", "a")}, 0),
        (AUTO, Entities(False), {"keyword": FixedSource("keyword")}, 0),
        (AUTO, Entities(False), {"keyword": FailingSource()}, 0),
        (AUTO, Entities(False), {"keyword": FailingSource(), "vector": FailingSource()}, 0),
    ],
    ids=[
        "the mode is not auto", "an entity is mentioned", "the lookup fails", "there is no lookup",
        "the text sources disagree", "one of them found nothing", "only one of them answered", "none of them answered",
    ],
)  # fmt: skip
async def test_stage_2_is_not_skipped(
    plan: Plan, entities: Entities | None, sources: dict[str, Retriever], lookup_count: int
) -> None:
    if entities:
        entities.calls = 0
    searched = Sources(entities, **sources)
    retrieved = await searched.retrieve(plan)
    assert "graph" in retrieved.searched
    assert searched.searched["graph"] == 1
    assert (entities.calls if entities else 0) == lookup_count


def test_stage_2_is_not_skipped_if_the_lookup_takes_too_long() -> None:
    sources = Sources(Entities(None))
    retrieved = virtual_clock.run(sources.retrieve(AUTO))
    assert sources.searched["graph"] == 1
    assert retrieved.degraded == ()


async def test_sources_that_fail_are_missing_and_reported_in_the_order_of_the_plan() -> None:
    sources = Sources(keyword=FailingSource(), vector=FailingSource())
    retrieved = await sources.retrieve(HYBRID)
    assert ids(retrieved) == {"graph": ("a", "b")}
    assert retrieved.searched == ("vector", "graph", "keyword")
    assert failures(retrieved) == [("vector", "connection refused"), ("keyword", "connection refused")]
    assert sources.recorded["graph"].queries[0].seed_ids == ()


@pytest.mark.parametrize("plan", [HYBRID, ONE_STAGE])
async def test_if_all_fail_the_error_has_every_failure_in_the_order_of_the_plan(plan: Plan) -> None:
    sources = Sources(**{name: FailingSource() for name in ("vector", "graph", "keyword")})
    with pytest.raises(AllSourcesFailed) as raised:
        await sources.retrieve(plan)
    assert [failed.source for failed in raised.value.failures] == ["vector", "graph", "keyword"]
    assert str(raised.value) == "; ".join(f"{name}: connection refused" for name in ("vector", "graph", "keyword"))


async def test_sources_with_an_open_circuit_are_not_searched_and_reported() -> None:
    sources = Sources(vector=FailingSource())
    await sources.retrieve(HYBRID)
    retrieved = await sources.retrieve(HYBRID)
    assert sources.searched == {"vector": 1, "graph": 2, "keyword": 2}
    assert [name for name, _ in failures(retrieved)] == ["vector"]
    assert "circuit open" in failures(retrieved)[0][1]


async def test_a_rejected_request_does_not_open_the_circuit() -> None:
    class RejectingSource:
        async def search(self, query: SourceQuery) -> Ranking:
            raise Rejected("too long")

    sources = Sources(vector=RejectingSource())
    for _ in range(3):
        assert failures(await sources.retrieve(HYBRID)) == [("vector", "too long")]
    assert sources.searched["vector"] == 3


async def test_a_cancelled_search_says_nothing_about_its_sources() -> None:
    """The circuit is half-open, and the request that tries the source is cancelled: the next one may try it again."""
    now, started = [0.0], asyncio.Event()

    class WaitingSource(StalledSource):
        async def search(self, query: SourceQuery) -> Ranking:
            started.set()
            return await super().search(query)

    class ChangingSource:
        """One source after another."""

        sources: ClassVar[list[Retriever]] = [FailingSource(), WaitingSource(), FixedSource("vector", "a")]

        async def search(self, query: SourceQuery) -> Ranking:
            return await self.sources.pop(0).search(query)

    breakers = CircuitBreakers(1, 1.0, 5.0, lambda: now[0])
    sources = Sources(breakers=breakers, vector=ChangingSource())
    await sources.retrieve(HYBRID)
    assert breakers.states()["vector"] == "open"
    now[0] = 1.0
    running = asyncio.create_task(sources.retrieve(HYBRID))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await sources.retrieve(HYBRID)).degraded == ()
    assert breakers.states()["vector"] == "closed"


async def test_the_vector_of_a_request_is_not_encoded_again() -> None:
    sources = Sources()
    plan = plan_of("a query", mode="vector", vector=unit_tuple(3))
    retrieved = await sources.retrieve(plan)
    vector = sources.recorded["vector"].queries[0].vector
    assert vector is not None
    assert vector.tobytes() == plan.ranking.vector
    assert retrieved.encoder == "none"


async def test_if_the_strategy_cannot_choose_seeds_stage_2_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: JointWalk, candidates: Candidates, weights: object, sources: object) -> Ints | Fused:
        raise ZeroDivisionError

    monkeypatch.setattr(JointWalk, "seeds", fails)
    sources = Sources()
    retrieved = await sources.retrieve(HYBRID)
    assert sources.recorded["graph"].queries[0].seed_ids == ()
    assert failures(retrieved) == [("fusion", f"{HYBRID.ranking.strategy} failed to choose seeds")]


@pytest.mark.parametrize(
    ("id_lists", "is_same"),
    [
        ([], False),
        ([("a",)], False),
        ([("a", "b"), ("a", "c")], True),
        ([("a",), ("a",), ("a",)], True),
        ([("a",), ("a",), ("b",)], False),
        ([("a",), ()], False),
    ],
)
def test_rankings_agree_if_there_are_several_with_the_same_first_document(
    id_lists: list[tuple[str, ...]], is_same: bool
) -> None:
    rankings = [Ranking.of_ids(str(number), ids, [1.0] * len(ids)) for number, ids in enumerate(id_lists)]
    assert same_top_document(rankings) is is_same
