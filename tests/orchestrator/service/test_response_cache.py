"""Cached responses: never outdated, and never those of another principal."""

from __future__ import annotations

import asyncio
import re
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import SENSITIVITIES, Scope
from adapters.engine import EmbeddedIndex
from adapters.model.filter import Eq, In, Not
from adapters.ports import SourceQuery
from cache import CachePolicy
from fusion.columns import Ranking
from orchestrator.auth.principal import Principal
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.page_token import PageToken
from orchestrator.planning.plan_key import cache_key
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.search import SearchService
from tests.clock import Clock
from tests.conftest import vector_record
from tests.orchestrator.services import (
    NOW,
    PRINCIPAL,
    SETTINGS,
    FailingSource,
    RecordingSource,
    empty_index,
    graph_source,
    request_of,
    search_service,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    await index.write(
        [
            vector_record("a", "Alpha Centauri is a star", seed=1),
            vector_record("s", "Alpha", sensitivity="restricted"),
        ],
        (),
    )
    return index


async def respond(
    service: SearchService, principal: Principal = PRINCIPAL, request_id: str = "r", **fields: object
) -> SearchResponse:
    response = await service.respond(request_of(**fields), principal, request_id)  # type: ignore[arg-type]
    return msgspec.json.decode(response.content, type=SearchResponse)


async def test_a_cached_response_has_the_same_hits_and_its_own_request_id(index: EmbeddedIndex, clock: Clock) -> None:
    service = search_service(index, clock=clock)
    first, second = await respond(service, request_id="one"), await respond(service, request_id="two")
    assert (first.cache, second.cache) == ("miss", "l1")
    assert (first.request_id, second.request_id) == ("one", "two")
    assert second.hits == first.hits
    assert second.timings_ms == {}
    assert 0 <= second.took_ms < first.took_ms + 5


async def test_a_cached_explanation_has_nothing_of_the_request_that_it_was_computed_for(
    index: EmbeddedIndex, clock: Clock
) -> None:
    service = search_service(index, clock=clock)
    first = await respond(service, explain=True, timeout_ms=5_000)
    cached = await respond(service, explain=True, timeout_ms=700)
    assert cached.cache == "l1"
    assert (first.timeout_ms, cached.timeout_ms) == (5_000, 700)
    assert first.timings_ms
    assert not cached.timings_ms
    assert cached.explain == first.explain
    assert b"ms" not in msgspec.json.encode(first.explain).replace(b'"terms"', b"")


async def test_a_write_is_found_by_the_next_request(index: EmbeddedIndex, clock: Clock) -> None:
    service = search_service(index, clock=clock)
    for number in range(20):
        assert {hit.id for hit in (await respond(service, limit=50)).hits} == {"a", *(f"n{n}" for n in range(number))}
        assert (await respond(service, limit=50)).cache == "l1"
        await index.write([vector_record(f"n{number}", "Alpha Centauri, again")], ())


async def test_refresh_and_bypass_use_neither_the_cache_nor_the_memo(index: EmbeddedIndex, clock: Clock) -> None:
    graph = graph_source(index)
    service = search_service(index, graph=graph, clock=clock, memo_ttl_s=60.0)
    for mode, searched in (("use", 1), ("use", 1), ("refresh", 2), ("use", 2), ("bypass", 3), ("use", 3)):
        await respond(service, mode="graph", cache=mode)
        assert len(graph.queries) == searched


async def test_a_degraded_response_is_cached_for_a_second_at_most(index: EmbeddedIndex, clock: Clock) -> None:
    service = search_service(index, vector=FailingSource(), clock=clock)
    assert (await respond(service, mode="hybrid")).degraded
    clock.now += 0.9
    assert (await respond(service, mode="hybrid")).cache == "l1"
    clock.now += 0.2
    assert (await respond(service, mode="hybrid")).cache == "miss"


async def test_a_bad_request_is_refused_every_time(index: EmbeddedIndex, clock: Clock) -> None:
    service = search_service(index, clock=clock)
    for _ in range(2):
        with pytest.raises(BadRequest, match="unknown field 'tenant'"):
            await respond(service, filter=Eq("tenant", "other"))


async def test_ages_are_computed_again_on_another_day(index: EmbeddedIndex, clock: Clock) -> None:
    service = search_service(index, clock=clock, policy=CachePolicy(10**9, 0.0, 1.0))
    await respond(service)
    assert (await respond(service)).cache == "l1"
    clock.now += 86_400
    assert (await respond(service)).cache == "miss"


async def test_no_principal_gets_the_cached_response_of_another(index: EmbeddedIndex, clock: Clock) -> None:
    """The same query by every tenant and clearance, several times."""
    principals = [
        Principal("test", Scope(tenant, environment), clearance)
        for tenant, environment, clearance in product(("t", "tt"), ("e", "te"), SENSITIVITIES)
    ]
    for number, principal in enumerate(principals):
        record = vector_record(
            f"d{number}", f"Alpha Centauri mark{number}x", scope=principal.scope, sensitivity=principal.clearance
        )
        await index.write([record], ())
    service = search_service(index, clock=clock)
    for _ in range(3):
        for principal in principals:
            response = await respond(service, principal, limit=50)
            visible = {
                f"mark{number}x"
                for number, other in enumerate(principals)
                if other.scope == principal.scope
                and SENSITIVITIES.index(other.clearance) <= SENSITIVITIES.index(principal.clearance)
            }
            assert set(re.findall(r"mark\d+x", msgspec.json.encode(response).decode())) == visible
    assert service.cache.levels.l1.stats.hits == 2 * len(principals)


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
principals = st.builds(
    Principal,
    st.just("test"),
    st.builds(Scope, st.sampled_from(["t", "te"]), st.sampled_from(["e", "ee"])),
    st.sampled_from(SENSITIVITIES),
)


def _identity(request: SearchRequest, principal: Principal) -> tuple[object, ...]:
    """Everything that decides a response, described in another way than by the key."""
    return (
        request.query, request.mode, request.limit, frozenset(request.collections or ()), request.filter is not None,
        request.fusion, tuple(request.weights.items()), request.min_score, request.explain, request.collapse,
        request.neighbors, request.rerank, tuple(request.boosts.items()), _has_cursor(request), principal,
    )  # fmt: skip


def _has_cursor(request: SearchRequest) -> bool:
    """The result of a reranker has no pages."""
    return request.cursor is not None and not request.rerank


def _key(service: SearchService, request: SearchRequest, principal: Principal) -> bytes:
    """The key of a request; instead of any cursor it gets the one of its own second page."""
    first = msgspec.structs.replace(request, cursor=None)
    plan, encoded = service.plan(first, principal)
    if _has_cursor(request):
        token = PageToken.at(2, plan.page.ranking_hash, b"12345678", 1, 100, plan.ranking.day, "model")
        plan, encoded = service.plan(msgspec.structs.replace(request, cursor=token.encode()), principal)
    return cache_key(encoded, service.data_versions.current(principal.scope), service.build_id(), service.content_ids)


@pytest.fixture(scope="module")
def empty_service(tmp_path_factory: pytest.TempPathFactory) -> SearchService:
    return search_service(empty_index(tmp_path_factory.mktemp("keys")))


@given(requests, principals, requests, principals)
def test_two_keys_are_equal_only_if_request_and_principal_are(
    empty_service: SearchService, one: SearchRequest, by_one: Principal, other: SearchRequest, by_other: Principal
) -> None:
    keys_are_equal = _key(empty_service, one, by_one) == _key(empty_service, other, by_other)
    assert keys_are_equal == (_identity(one, by_one) == _identity(other, by_other))


async def test_settings_that_change_responses_change_keys(index: EmbeddedIndex, clock: Clock) -> None:
    """Every setting is in tests/orchestrator/bootstrap/test_content_ids.py; these go through the service."""
    request = SearchRequest(query="a", rerank=True)

    def key(**settings: object) -> bytes:
        return _key(search_service(index, clock=clock, settings=SETTINGS.changed(**settings)), request, PRINCIPAL)

    assert key(cache_ttl_s=1, log_level="error") == key()
    for changed in (
        {"fusion": "rrf(k=60)"},
        {"weights": {"graph": 2}},
        {"candidates_per_source": 50},
        {"boosts": "recency=0.5"},
        {"rerank_top": 4},
    ):
        assert key(**changed) != key()


async def test_a_thousand_equal_requests_at_once_cost_one_search_of_each_source(
    index: EmbeddedIndex, clock: Clock
) -> None:
    gate = asyncio.Event()

    class GatedSource(RecordingSource):
        async def search(self, query: SourceQuery) -> Ranking:
            ranking = await super().search(query)
            await gate.wait()
            return ranking

    graph = GatedSource(graph_source(index))
    service = search_service(index, graph=graph, clock=clock)
    flights = service.cache.levels.single_flight
    running = [asyncio.create_task(respond(service, mode="hybrid")) for _ in range(1_000)]
    while flights.coalesced < 999:  # noqa: ASYNC110
        await asyncio.sleep(0)
    gate.set()
    responses = await asyncio.gather(*running)
    assert len(graph.queries) == 1
    assert flights.coalesced == 999
    assert len({msgspec.json.encode(response.hits) for response in responses}) == 1


async def test_a_response_that_lacks_a_source_for_lack_of_time_is_not_returned_to_a_request_with_more_time(
    index: EmbeddedIndex, clock: Clock
) -> None:
    class SlowSource(RecordingSource):
        async def search(self, query: SourceQuery) -> Ranking:
            await asyncio.sleep(0.2)
            return await super().search(query)

    service = search_service(index, graph=SlowSource(graph_source(index)), clock=clock)
    complete = await respond(service, mode="hybrid")
    hasty = await respond(service, mode="hybrid", timeout_ms=100, cache="refresh")
    assert ([each.source for each in hasty.degraded], complete.degraded) == (["graph"], ())
    again = await respond(service, mode="hybrid")
    assert (again.cache, again.degraded) == ("l1", ())
