from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio
import msgspec
import pytest

from adapters import Query, Record, Scope, Unavailable
from adapters.embedded import Library
from fusion import JointWalk
from orchestrator import engine as engine_
from orchestrator.contract import SearchResponse
from orchestrator.encode import Encoding
from orchestrator.outcome import AllSourcesFailed
from orchestrator.plan import BadRequest
from tests.conftest import entry, unit
from tests.orchestrator.engines import (
    Broken,
    FixedVector,
    Forgetful,
    GivenPriors,
    Recorder,
    Stalled,
    Unreadable,
    ask,
    engine,
    opened,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def library(tmp_path) -> Library:
    made = opened(tmp_path)
    await made.write(
        [
            entry("a", "Alpha Centauri is a star", seed=1, title="Alpha Centauri", metadata={"kind": "star"}),
            entry("b", "Proxima is near Alpha Centauri", seed=2, language="en"),
            entry("m", "remember Alpha Centauri", seed=3, collection="memory"),
            entry("s", "secret Alpha Centauri", seed=1, sensitivity="restricted"),
        ],
        (),
    )
    return made


async def test_three_sources_become_one_ranking_that_says_who_found_what(library: Library) -> None:
    answer = await ask(engine(library))
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    first = answer.hits[0]
    assert {source: share and share.rank for source, share in first.sources.items()} == {
        "vector": 1, "graph": 1, "keyword": 1,
    }  # fmt: skip
    assert first.fusion_score == first.score == 1.0
    assert first.metadata == {"kind": "star"}
    assert (answer.generation, answer.index_version, answer.request_id) == (1, "test-1", "r1")
    assert answer.degraded == ()
    assert answer.cache == "miss"
    assert {
        "plan",
        "gather",
        "embed_model",
        "vector",
        "graph",
        "keyword",
        "fuse",
        "boost",
        "collapse",
        "hydrate",
    } == set(answer.timings_ms)


async def test_a_source_that_fails_is_missing_and_said_to_be(library: Library) -> None:
    answer = await ask(engine(library, vector=Broken()))
    assert [(each.source, each.reason) for each in answer.degraded] == [("vector", "connection refused")]
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert set(answer.hits[0].sources) == {"graph", "keyword"}
    assert answer.hits[0].fusion_score == 1.0


async def test_a_source_that_stalls_costs_no_more_than_the_deadline(library: Library) -> None:
    answer = await ask(engine(library, graph=Stalled(), vector=Stalled()), timeout_ms=100)
    assert [(each.source, each.reason) for each in answer.degraded] == [
        ("vector", "timed out"),
        ("graph", "timed out"),
    ]
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert answer.took_ms < 1_000


async def test_the_graph_starts_from_what_the_text_sources_found(library: Library) -> None:
    graph = Recorder(library)
    await ask(engine(library, graph=graph), query="a star nearby", mode="hybrid")
    assert graph.asked[0].near == ("a", "b")
    await ask(engine(library, graph=graph), fusion="rrf(k=60)")
    await ask(engine(library, graph=graph), mode="graph")
    await ask(engine(library, graph=graph, vector=Broken(), keyword=Broken()))
    assert [query.near for query in graph.asked[1:]] == [(), (), ()]


async def test_auto_stops_where_the_text_sources_agree_and_nothing_is_named(library: Library) -> None:
    graph = Recorder(library)
    answer = await ask(engine(library, graph=graph), query="a star", mode="auto")
    assert answer.route.sources == ("vector", "keyword")
    assert answer.route.reason.endswith("it names nothing and the others agree, so graph was not asked")
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert set(answer.hits[0].sources) == {"vector", "keyword"}
    for asked in ({"mode": "hybrid"}, {"query": "the star alpha centauri"}):
        assert "graph" in (await ask(engine(library, graph=graph), **{"query": "a star", **asked})).route.sources
    disagree = engine(library, graph=graph, keyword=Forgetful("b", "a"))
    assert "graph" in (await ask(disagree, query="a star")).route.sources


async def test_a_graph_that_cannot_say_what_is_named_is_asked(library: Library) -> None:
    away = engine(library, priors=GivenPriors(Unavailable("away")), graph=Broken())
    answer = await ask(away, query="a star")
    assert [each.source for each in answer.degraded] == ["graph"]


async def test_a_text_source_that_stalls_leaves_the_graph_its_time(library: Library) -> None:
    answer = await ask(engine(library, vector=Stalled()), timeout_ms=200)
    assert [(each.source, each.reason) for each in answer.degraded] == [("vector", "timed out")]
    assert set(answer.hits[0].sources) == {"graph", "keyword"}
    assert answer.took_ms < 1_000


async def test_no_source_at_all_is_an_error_that_names_each(library: Library) -> None:
    with pytest.raises(AllSourcesFailed) as raised:
        await ask(engine(library, vector=Broken(), graph=Broken(), keyword=Stalled()), timeout_ms=50)
    assert [failed.source for failed in raised.value.failures] == ["vector", "graph", "keyword"]


async def test_without_the_documents_there_is_no_answer(library: Library) -> None:
    with pytest.raises(AllSourcesFailed, match="documents: disk on fire"):
        await ask(engine(library, Unreadable()))


async def test_fusion_that_fails_falls_back_and_says_so(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __str__(self) -> str:
            return "failing()"

        def __call__(self, *_: object) -> object:
            raise ZeroDivisionError

    real = engine_.plan
    monkeypatch.setattr(engine_, "plan", lambda *given: replace(real(*given), strategy=Failing()))
    answer = await ask(engine(library))
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert [(each.source, each.reason) for each in answer.degraded] == [
        ("fusion", "failing() failed, concatenate() was used")
    ]


async def test_a_source_that_forgets_its_filter_leaks_nothing(library: Library) -> None:
    answer = await ask(engine(library, keyword=Forgetful("s", "m", "a")), mode="keyword", explain=True)
    assert [hit.id for hit in answer.hits] == ["a"]
    assert answer.explain
    assert answer.explain.removed.withheld == 2
    assert [hit.id for hit in answer.explain.rankings["keyword"]] == ["a"]


async def test_min_score_is_a_bound_on_the_fusion_score(library: Library) -> None:
    scores = [hit.fusion_score for hit in (await ask(engine(library))).hits]
    kept = await ask(engine(library), min_score=scores[0])
    assert [hit.id for hit in kept.hits] == ["a"]


async def test_explain_shows_what_the_answer_was_made_of(library: Library) -> None:
    answer = await ask(engine(library), explain=True, weights={"graph": 2.0}, fusion="rrf(k=10)")
    assert answer.explain
    assert answer.explain.fusion == "rrf(k=10)"
    assert answer.explain.weights == {"vector": 1.0, "graph": 2.0, "keyword": 1.0}
    assert answer.explain.encoder == "model"
    assert set(answer.explain.rankings) == {"vector", "graph", "keyword"}
    share = answer.hits[0].sources["graph"]
    assert share
    assert share.contribution == 2 / (10 + share.rank)


async def test_a_vector_of_the_request_s_own_is_taken(library: Library) -> None:
    vector = tuple(float(number) for number in unit(2))
    answer = await ask(engine(library), mode="vector", vector=vector, explain=True)
    assert answer.hits[0].id == "b"
    assert "embed_model" not in answer.timings_ms
    with pytest.raises(BadRequest, match="vector: 2 numbers, the documents have 16"):
        await ask(engine(library), mode="vector", vector=(1.0, 0.0))


async def test_the_same_request_gives_the_same_bytes(library: Library) -> None:
    made = engine(library)
    first = msgspec.json.encode((await ask(made)).hits)
    for _ in range(100):
        assert msgspec.json.encode((await ask(made)).hits) == first


async def test_a_prior_sways_the_order_only_when_it_is_asked_for(library: Library) -> None:
    made = engine(library, priors=GivenPriors(b=1.0))
    plain = await ask(made)
    assert [hit.boosts for hit in plain.hits] == [{"importance": 1.0, "recency": 1.0}] * 2
    boosted = await ask(made, boosts={"centrality": True})
    by_id = {hit.id: hit for hit in boosted.hits}
    assert by_id["b"].boosts == {"centrality": 1.1, "importance": 1.0, "recency": 1.0}
    assert by_id["b"].score == by_id["b"].fusion_score * 1.1
    assert by_id["a"].boosts["centrality"] == 1.0


async def test_without_the_priors_the_fused_order_stands_and_the_answer_says_so(library: Library) -> None:
    answer = await ask(engine(library, priors=GivenPriors(Unavailable("no prior"))), boosts={"centrality": True})
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert [(each.source, each.reason) for each in answer.degraded] == [("boosts", "no prior")]


async def test_the_same_request_many_times_at_once_gives_the_same_bytes(library: Library) -> None:
    """With a table at hand, which would answer otherwise: who comes first is alone, the others join it."""

    class OtherTable:
        def encode(self, text: str) -> object:
            return unit(2)

    made = engine(library)
    made.roads.encoding = Encoding(FixedVector(), OtherTable(), "adaptive", 2, 10)  # type: ignore[arg-type]
    answers: list[SearchResponse] = []

    async def one() -> None:
        answers.append(await ask(made, explain=True))

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(one)
    assert {answer.explain.encoder for answer in answers if answer.explain} == {"model"}
    assert len({msgspec.json.encode(answer.hits) for answer in answers}) == 1


class Slow:
    """A reader and priors that take their time, as those on a server do."""

    def __init__(self, library: Library, seconds: float) -> None:
        self._library, self._seconds = library, seconds

    async def fetch(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Record]:
        await anyio.sleep(self._seconds)
        return await self._library.fetch(scope, ids)

    async def names(self, query: Query) -> bool:
        return True

    async def centralities(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        await anyio.sleep_forever()
        return {}


async def test_what_the_answer_can_do_without_leaves_time_for_the_documents(library: Library) -> None:
    """A stalled source and stalled centralities, each as long as they may: the documents still come."""
    slow = Slow(library, 0.01)
    made = engine(library, documents=slow, priors=slow, graph=Stalled())  # type: ignore[arg-type]
    answer = await ask(made, timeout_ms=400, boosts={"centrality": True})
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert [(each.source, each.reason) for each in answer.degraded] == [("graph", "timed out"), ("boosts", "timed out")]


async def test_a_page_is_filled_up_past_what_may_not_leave(library: Library) -> None:
    made = engine(library, keyword=Forgetful("s", "m", "a", "gone", "b"))
    answer = await ask(made, mode="keyword", limit=1, explain=True)
    assert [hit.id for hit in answer.hits] == ["a"]
    rest = await ask(made, mode="keyword", limit=5, cursor=answer.next_cursor, explain=True)
    assert [hit.id for hit in rest.hits] == ["b"]
    assert rest.explain
    assert (rest.explain.removed.deleted, rest.explain.removed.withheld) == (1, 0)


async def test_a_strategy_that_cannot_say_where_to_start_costs_no_answer(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(JointWalk, "start", fails)
    answer = await ask(engine(library), mode="hybrid")
    assert [hit.id for hit in answer.hits] == ["a", "b"]
    assert [each.source for each in answer.degraded] == ["fusion"]


async def test_explain_says_which_strategy_was_used_in_the_end(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(JointWalk, "__call__", fails)
    answer = await ask(engine(library), mode="hybrid", explain=True)
    assert answer.explain
    assert answer.explain.fusion == "concatenate()"
