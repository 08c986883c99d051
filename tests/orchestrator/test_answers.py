"""Answers from the cache: only ever what the engine would say now, to whoever asks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import SENSITIVITIES, Query, Scope
from adapters.embedded import Library
from adapters.filter import Eq, In, Not
from cache import Memo, Memory, Tiered, Times
from fusion import Ranking
from orchestrator.admission import Admission
from orchestrator.answers import NOT_IN_ANSWERS, Answers
from orchestrator.caller import Caller
from orchestrator.contract import SearchRequest, SearchResponse
from orchestrator.engine import Engine
from orchestrator.plan import BadRequest
from orchestrator.remember import Remembered, RememberedPriors
from orchestrator.settings import Settings
from orchestrator.versions import Versions
from tests.conftest import SCOPE, entry
from tests.orchestrator.engines import CALLER, NOW, Broken, GivenPriors, Recorder, engine, opened

pytestmark = pytest.mark.anyio


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    await made.write(
        [entry("a", "Alpha Centauri is a star", seed=1), entry("s", "Alpha", sensitivity="restricted")], ()
    )
    return made


def answers(made: Engine, clock: Callable[[], float], settings: Settings | None = None) -> Answers:
    kept = Tiered(Memory(1_000_000), None, Times(10.0, 5.0, 1.0), clock, lambda: 0.0)
    return Answers(made, kept, Versions([made.index], "", None), settings or made.settings, Admission(100, 100), clock)


async def ask(kept: Answers, caller: Caller = CALLER, id_: str = "r", **asked: object) -> SearchResponse:
    request = SearchRequest(**{"query": "alpha centauri", "timeout_ms": 5_000, **asked})  # type: ignore[arg-type]
    return msgspec.json.decode((await kept.respond(request, caller, id_)).body, type=SearchResponse)


async def test_the_second_who_asks_has_the_same_answer_under_an_id_of_its_own(library: Library, clock: Clock) -> None:
    kept = answers(engine(library), clock)
    first, second = await ask(kept, id_="one"), await ask(kept, id_="two")
    assert (first.cache, second.cache) == ("miss", "l1")
    assert (first.request_id, second.request_id) == ("one", "two")
    assert second.hits == first.hits
    assert second.timings_ms == {}
    assert 0 <= second.took_ms < first.took_ms + 5


async def test_what_was_written_is_found_at_once(library: Library, clock: Clock) -> None:
    kept = answers(engine(library), clock)
    for number in range(20):
        assert {hit.id for hit in (await ask(kept, limit=50)).hits} == {"a", *(f"n{n}" for n in range(number))}
        assert (await ask(kept, limit=50)).cache == "l1"
        await library.write([entry(f"n{number}", "Alpha Centauri, again")], ())


async def test_refresh_and_bypass_are_computed_anew(library: Library, clock: Clock) -> None:
    graph = Recorder(library)
    made = engine(library, graph=Remembered(graph, Memo(10), lambda _: (), 60.0, clock))
    kept = answers(made, clock)
    for cache, computed in (("use", 1), ("use", 1), ("refresh", 2), ("use", 2), ("bypass", 3), ("use", 3)):
        await ask(kept, mode="graph", cache=cache)
        assert len(graph.asked) == computed


async def test_a_degraded_answer_is_kept_for_a_second_at_most(library: Library, clock: Clock) -> None:
    kept = answers(engine(library, vector=Broken()), clock)
    assert (await ask(kept, mode="hybrid")).degraded
    clock.now += 0.9
    assert (await ask(kept, mode="hybrid")).cache == "l1"
    clock.now += 0.2
    assert (await ask(kept, mode="hybrid")).cache == "miss"


async def test_what_is_bad_is_refused_whatever_is_kept(library: Library, clock: Clock) -> None:
    kept = answers(engine(library), clock)
    for _ in range(2):
        with pytest.raises(BadRequest, match="unknown field 'tenant'"):
            await ask(kept, filter=Eq("tenant", "other"))


async def test_an_age_is_counted_anew_on_another_day(library: Library, clock: Clock) -> None:
    kept = answers(engine(library), clock)
    kept.kept._times = Times(10**9, 0.0, 1.0)
    await ask(kept)
    assert (await ask(kept)).cache == "l1"
    clock.now += 86_400
    assert (await ask(kept)).cache == "miss"


async def test_two_callers_never_have_each_other_s_answer(library: Library, clock: Clock) -> None:
    """The same question by every tenant and clearance, again and again, in any order."""
    callers = [Caller(Scope(t, e), c) for t, e, c in product(("t", "tt"), ("e", "te"), SENSITIVITIES)]
    for number, caller in enumerate(callers):
        own = entry(f"d{number}", f"Alpha Centauri mark{number}x", scope=caller.scope, sensitivity=caller.clearance)
        await library.write([own], ())
    kept = answers(engine(library), clock)
    for _ in range(3):
        for caller in callers:
            answer = await ask(kept, caller, limit=50)
            allowed = {
                f"mark{n}x"
                for n, other in enumerate(callers)
                if other.scope == caller.scope
                and SENSITIVITIES.index(other.clearance) <= SENSITIVITIES.index(caller.clearance)
            }
            assert set(re.findall(r"mark\d+x", msgspec.json.encode(answer).decode())) == allowed
    assert kept.kept.l1.stats.hits == 2 * len(callers)


texts = st.sampled_from(["a", "b", "a b", '"a"'])
requests = st.builds(
    SearchRequest,
    query=texts,
    mode=st.sampled_from(["auto", "vector"]),
    limit=st.integers(1, 2),
    collections=st.none() | st.sampled_from([("a",), ("b",), ("a", "b"), ("b", "a")]),
    filter=st.none() | st.sampled_from([Eq("language", "a"), In("language", ("a",)), Not(Not(Eq("language", "a")))]),
    fusion=st.none() | st.just("rrf(k=60)"),
    weights=st.sampled_from([{}, {"graph": 1.0}, {"graph": 2.0}]),
    min_score=st.sampled_from([0.0, 0.5]),
    timeout_ms=st.sampled_from([100, 200]),
    explain=st.booleans(),
    cache=st.sampled_from(["use", "refresh"]),
    collapse=st.sampled_from(["parent", "none"]),
    neighbors=st.integers(0, 1),
    rerank=st.booleans(),
    boosts=st.sampled_from([{}, {"recency": True}, {"recency": False}]),
    cursor=st.none() | st.just("x"),
)
callers = st.builds(
    Caller,
    st.builds(Scope, st.sampled_from(["t", "te"]), st.sampled_from(["e", "ee"])),
    st.sampled_from(SENSITIVITIES),
)


def _meant(request: SearchRequest, caller: Caller) -> tuple[object, ...]:
    """All that decides an answer, told another way than the key tells it."""
    return (
        request.query, request.mode, request.limit, frozenset(request.collections or ()), request.filter is not None,
        request.fusion, tuple(request.weights.items()), request.min_score, request.explain, request.collapse,
        request.neighbors, request.rerank, tuple(request.boosts.items()), request.cursor, caller,
    )  # fmt: skip


@given(requests, callers, requests, callers)
def test_two_keys_are_equal_only_if_request_and_caller_are(
    tmp_path_factory: pytest.TempPathFactory, one: SearchRequest, by: Caller, other: SearchRequest, by_other: Caller
) -> None:
    kept = _kept(tmp_path_factory)
    assert (kept.key(one, by) == kept.key(other, by_other)) == (_meant(one, by) == _meant(other, by_other))


_made: list[Answers] = []


def _kept(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    if not _made:
        _made.append(answers(engine(opened(tmp_path_factory.mktemp("keys"))), lambda: NOW))
    return _made[0]


async def test_settings_that_change_answers_change_keys(library: Library, clock: Clock) -> None:
    made = engine(library)
    request = SearchRequest(query="a")
    plain = answers(made, clock).key(request, CALLER)
    assert (
        answers(made, clock, Settings(source_timeout_ms=5_000, cache_ttl_s=1, log_level="error")).key(request, CALLER)
        == plain
    )
    for changed in (
        {"fusion": "rrf(k=60)"},
        {"weight_graph": 2},
        {"depth": 50},
        {"boosts": ""},
        {"rerank_top": 3},
    ):
        assert answers(made, clock, Settings(source_timeout_ms=5_000, **changed)).key(request, CALLER) != plain
    assert set(Settings.model_fields) >= NOT_IN_ANSWERS


async def test_a_thousand_who_ask_the_same_at_once_cost_one_search_of_each_source(
    library: Library, clock: Clock
) -> None:
    class Waiting(Recorder):
        async def search(self, query: Query) -> Ranking:
            ranking = await super().search(query)
            await asyncio.sleep(0.05)
            return ranking

    graph = Waiting(library)
    kept = answers(engine(library, graph=graph), clock)
    found = await asyncio.gather(*(ask(kept, mode="hybrid") for _ in range(1_000)))
    assert len(graph.asked) == 1
    assert kept.kept.flights.joined == 999
    assert len({msgspec.json.encode(answer.hits) for answer in found}) == 1


async def test_a_ranking_is_remembered_while_the_data_stays_as_it_is(library: Library, clock: Clock) -> None:
    graph = Recorder(library)
    versions = Versions([library], "", None)
    made = engine(library, graph=Remembered(graph, Memo(100), versions.now, 60.0, clock))
    request = SearchRequest(query="alpha centauri", mode="graph", timeout_ms=5_000)
    for asked in ({}, {"limit": 3}, {"explain": True}, {"boosts": {"centrality": True}}, {"collapse": "none"}):
        await made.search(msgspec.structs.replace(request, **asked), CALLER, "r")
    assert len(graph.asked) == 1
    await made.search(msgspec.structs.replace(request, filter=Eq("language", "en")), CALLER, "r")
    await made.search(request, Caller(SCOPE, "restricted"), "r")
    await made.search(request, Caller(Scope("other"), "normal"), "r")
    assert len(graph.asked) == 4
    await library.write([entry("b", "Alpha Centauri")], ())
    assert [hit.id for hit in (await made.search(request, CALLER, "r")).hits] == ["a", "b"]
    assert len(graph.asked) == 5
    clock.now += 61.0  # nobody tells of a write that another machine took while Redis was away
    await made.search(request, CALLER, "r")
    assert len(graph.asked) == 6


async def test_centralities_are_remembered_for_a_while(clock: Clock) -> None:
    class Counting(GivenPriors):
        asked = 0

        async def centralities(self, scope: Scope, ids: object) -> dict[str, float]:
            self.asked += 1
            return {"a": 0.5}

    inner = Counting()
    priors = RememberedPriors(inner, Memo(10), lambda scope: (scope.tenant,), 10.0, clock)  # type: ignore[arg-type]
    for scope, ids, seconds, asked in (
        (SCOPE, ["a"], 0, 1),
        (SCOPE, ["a"], 9, 1),
        (SCOPE, ["b"], 0, 2),
        (SCOPE, ["a"], 2, 3),
    ):
        clock.now += seconds
        assert await priors.centralities(scope, ids) == {"a": 0.5}
        assert inner.asked == asked
    await priors.centralities(Scope("other"), ["a"])
    assert inner.asked == 4


class Failing:
    async def search(self, query: Query) -> Ranking:
        raise ZeroDivisionError


async def test_what_fails_is_not_remembered(library: Library) -> None:
    memo = Memo[bytes, tuple[float, Ranking]](10)
    remembered = Remembered(Failing(), memo, lambda _: (), 60.0, lambda: 0.0)
    answer = await engine(library, graph=remembered).search(
        SearchRequest(query="alpha", mode="hybrid", timeout_ms=5_000), CALLER, "r"
    )
    assert [each.source for each in answer.degraded] == ["graph"]
    assert len(memo) == 0


async def test_what_was_left_out_for_want_of_time_is_not_given_to_who_has_it(library: Library, clock: Clock) -> None:
    class Slow(Recorder):
        async def search(self, query: Query) -> Ranking:
            await asyncio.sleep(0.2)
            return await super().search(query)

    kept = answers(engine(library, graph=Slow(library)), clock)
    whole = await ask(kept, mode="hybrid")
    hasty = await ask(kept, mode="hybrid", timeout_ms=100, cache="refresh")
    assert ([each.source for each in hasty.degraded], whole.degraded) == (["graph"], ())
    again = await ask(kept, mode="hybrid")
    assert (again.cache, again.degraded) == ("l1", ())


async def test_another_synonym_is_another_key(library: Library, clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "synonyms.txt"
    keys = set()
    for text in ("a, b", "a, c"):
        file.write_text(text)
        settings = Settings(source_timeout_ms=5_000, expander=f"synonyms://{file}")
        keys.add(answers(engine(library), clock, settings).key(SearchRequest(query="a"), CALLER))
    assert len(keys) == 2
