"""A whole search, without the response cache: what comes back, and what is reported if a part fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from adapters import Record, Scope, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.model.filter import Filter
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.ports import Snapshot, SourceQuery
from fusion.columns import Documents
from fusion.doc_ids import doc_id
from fusion.joint_walk import JointWalk
from fusion.strategy import STRATEGIES
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import SearchResponse
from tests.conftest import vector_record
from tests.orchestrator.services import (
    FailingDocuments,
    FailingSource,
    FixedGraph,
    FixedSource,
    FixedStaticEncoder,
    StalledSource,
    empty_index,
    graph_source,
    search,
    search_service,
    unit_tuple,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    await index.write(
        [
            vector_record("a", "Alpha Centauri is a star", seed=1, title="Alpha Centauri", metadata={"kind": "star"}),
            vector_record("b", "Proxima is near Alpha Centauri", seed=2, language="en"),
            vector_record("m", "remember Alpha Centauri", seed=3, collection="memory"),
            vector_record("s", "secret Alpha Centauri", seed=1, sensitivity="restricted"),
        ],
        (),
    )
    return index


def found_by(response: SearchResponse) -> set[str]:
    """The sources that returned the first hit."""
    return {source for source, found in response.hits[0].sources.items() if found}


async def test_three_sources_become_one_ranking_with_provenance(index: EmbeddedIndex) -> None:
    response = await search(search_service(index))
    assert [hit.id for hit in response.hits] == ["a", "b"]
    first = response.hits[0]
    assert {source: part and part.rank for source, part in first.sources.items()} == {
        "vector": 1, "graph": 1, "keyword": 1,
    }  # fmt: skip
    assert first.fusion_score == first.score == 1.0
    assert first.metadata == {"kind": "star"}
    assert (response.generation, response.index_version, response.request_id) == (1, "test-1", "r1")
    assert response.degraded == ()
    assert response.cache == "miss"
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
    } == set(response.timings_ms)


async def test_a_source_that_fails_is_missing_and_reported(index: EmbeddedIndex) -> None:
    response = await search(search_service(index, vector=FailingSource()))
    assert [(each.source, each.reason) for each in response.degraded] == [("vector", "connection refused")]
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert found_by(response) == {"graph", "keyword"}
    assert response.hits[0].fusion_score == 1.0


async def test_a_source_that_stalls_costs_no_more_than_the_deadline(index: EmbeddedIndex) -> None:
    service = search_service(index, graph=StalledSource(), vector=StalledSource())
    response = await search(service, timeout_ms=100)
    assert [(each.source, each.reason) for each in response.degraded] == [
        ("vector", "timed out"),
        ("graph", "timed out"),
    ]
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert response.took_ms < 1_000


async def test_the_graph_starts_from_what_the_text_sources_found(index: EmbeddedIndex) -> None:
    graph = graph_source(index)
    await search(search_service(index, graph=graph), query="a star nearby", mode="hybrid")
    assert graph.queries[0].seed_ids == ("a", "b")
    await search(search_service(index, graph=graph), fusion="rrf(k=60)")
    await search(search_service(index, graph=graph), mode="graph")
    await search(search_service(index, graph=graph, vector=FailingSource(), keyword=FailingSource()))
    assert [query.seed_ids for query in graph.queries[1:]] == [(), (), ()]


async def test_auto_skips_stage_2_if_the_text_sources_agree_and_no_entity_is_mentioned(index: EmbeddedIndex) -> None:
    graph = graph_source(index)
    response = await search(search_service(index, graph=graph), query="a star", mode="auto")
    assert response.route.sources == ("vector", "keyword")
    assert response.route.reason.endswith("graph skipped: no entity in the query, and the other sources agree")
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert found_by(response) == {"vector", "keyword"}
    for fields in ({"mode": "hybrid"}, {"query": "the star alpha centauri"}):
        complete = await search(search_service(index, graph=graph), **{"query": "a star", **fields})
        assert "graph" in complete.route.sources
    disagreeing = search_service(index, graph=graph, keyword=FixedSource("keyword", "b", "a"))
    assert "graph" in (await search(disagreeing, query="a star")).route.sources


@pytest.mark.parametrize("error", [Unavailable("away"), IndexError("a reply that the driver cannot parse")])
async def test_the_graph_is_searched_if_the_entity_lookup_fails(index: EmbeddedIndex, error: Exception) -> None:
    service = search_service(index, entities=FixedGraph(error), graph=FailingSource())
    response = await search(service, query="a star")
    assert [each.source for each in response.degraded] == ["graph"]


async def test_a_text_source_that_stalls_leaves_the_graph_its_time(index: EmbeddedIndex) -> None:
    response = await search(search_service(index, vector=StalledSource()), timeout_ms=200)
    assert [(each.source, each.reason) for each in response.degraded] == [("vector", "timed out")]
    assert found_by(response) == {"graph", "keyword"}
    assert response.took_ms < 1_000


async def test_if_all_sources_fail_the_error_names_each(index: EmbeddedIndex) -> None:
    service = search_service(index, vector=FailingSource(), graph=FailingSource(), keyword=StalledSource())
    with pytest.raises(AllSourcesFailed) as raised:
        await search(service, timeout_ms=50)
    assert [failed.source for failed in raised.value.failures] == ["vector", "graph", "keyword"]


async def test_without_the_documents_there_is_no_response(index: EmbeddedIndex) -> None:
    service = search_service(index, documents=FailingDocuments())  # type: ignore[arg-type]
    with pytest.raises(AllSourcesFailed, match="documents: disk on fire"):
        await search(service)


class FailingStrategy:
    """A fusion strategy with a defect."""

    def __str__(self) -> str:
        return "failing()"

    def __call__(self, *_: object) -> object:
        raise ZeroDivisionError


async def test_if_fusion_fails_the_rankings_are_concatenated_and_it_is_reported(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STRATEGIES, "failing", FailingStrategy)  # type: ignore[arg-type]
    response = await search(search_service(index), fusion="failing()")
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert [(each.source, each.reason) for each in response.degraded] == [
        ("fusion", "failing() failed, concatenate() was used")
    ]


async def test_a_source_that_ignores_its_filter_leaks_nothing(index: EmbeddedIndex) -> None:
    service = search_service(index, keyword=FixedSource("keyword", "s", doc_id("m", "memory"), "a"))
    response = await search(service, mode="keyword", explain=True)
    assert [hit.id for hit in response.hits] == ["a"]
    assert response.explain
    assert response.explain.removed.withheld == 2
    assert [hit.id for hit in response.explain.rankings["keyword"]] == ["a"]


async def test_min_score_is_a_bound_on_the_fusion_score(index: EmbeddedIndex) -> None:
    scores = [hit.fusion_score for hit in (await search(search_service(index))).hits]
    bounded = await search(search_service(index), min_score=scores[0])
    assert [hit.id for hit in bounded.hits] == ["a"]


async def test_explain_reports_how_the_response_came_about(index: EmbeddedIndex) -> None:
    response = await search(search_service(index), explain=True, weights={"graph": 2.0}, fusion="rrf(k=10)")
    assert response.explain
    assert response.explain.fusion == "rrf(k=10)"
    assert response.explain.weights == {"vector": 1.0, "graph": 2.0, "keyword": 1.0}
    assert response.explain.encoder == "model"
    assert set(response.explain.rankings) == {"vector", "graph", "keyword"}
    part = response.hits[0].sources["graph"]
    assert part
    assert part.contribution == 2 / (10 + part.rank)


async def test_the_vector_of_a_request_is_used_instead_of_the_encoder(index: EmbeddedIndex) -> None:
    response = await search(search_service(index), mode="vector", vector=unit_tuple(2), explain=True)
    assert response.hits[0].id == "b"
    assert "embed_model" not in response.timings_ms
    with pytest.raises(BadRequest, match="vector: 2 numbers, the documents have 16"):
        await search(search_service(index), mode="vector", vector=(1.0, 0.0))


async def test_the_same_request_gives_the_same_bytes(index: EmbeddedIndex) -> None:
    service = search_service(index)
    first = msgspec.json.encode((await search(service)).hits)
    for _ in range(100):
        assert msgspec.json.encode((await search(service)).hits) == first


async def test_centrality_changes_the_score_only_if_the_request_says_so(index: EmbeddedIndex) -> None:
    service = search_service(index, centralities=FixedGraph(b=1.0))
    plain = await search(service)
    assert [hit.boosts for hit in plain.hits] == [{}] * 2
    boosted = await search(service, boosts={"centrality": True})
    by_id = {hit.id: hit for hit in boosted.hits}
    assert by_id["b"].boosts == {"centrality": 1.1}
    assert by_id["b"].score == by_id["b"].fusion_score * 1.1
    assert by_id["a"].boosts["centrality"] == 1.0


async def test_without_centralities_the_fused_order_stays_and_it_is_reported(index: EmbeddedIndex) -> None:
    service = search_service(index, centralities=FixedGraph(Unavailable("no centralities")))
    response = await search(service, boosts={"centrality": True})
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert [(each.source, each.reason) for each in response.degraded] == [("boosts", "no centralities")]


async def test_a_hundred_equal_requests_at_once_give_the_same_bytes(index: EmbeddedIndex) -> None:
    """There is a static encoder with another vector: load is no reason to use it."""
    service = search_service(index, static=FixedStaticEncoder(2))
    responses: list[SearchResponse] = []

    async def one() -> None:
        responses.append(await search(service, explain=True))

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(one)
    assert {response.explain.encoder for response in responses if response.explain} == {"model"}
    assert len({msgspec.json.encode(response.hits) for response in responses}) == 1


class SlowDocuments:
    """A reader that takes some time, as one on a server does."""

    def __init__(self, index: EmbeddedIndex, seconds: float) -> None:
        self._index, self._seconds = index, seconds

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        await anyio.sleep(self._seconds)
        return await self._index.fetch(scope, documents)

    async def counts(self, field: str, condition: Filter) -> Mapping[str, int]:
        return await self._index.counts(field, condition)


class StalledGraph:
    """A graph that knows an entity in every query, and never returns centralities."""

    async def mentions_entity(self, query: SourceQuery) -> bool:
        return True

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        await anyio.sleep_forever()
        return {}


async def test_optional_stages_leave_time_for_the_documents(index: EmbeddedIndex) -> None:
    """A stalled source and stalled centralities, each for as long as allowed: the documents are still read."""
    service = search_service(
        index,
        documents=SlowDocuments(index, 0.01),  # type: ignore[arg-type]
        entities=StalledGraph(),
        centralities=StalledGraph(),
        graph=StalledSource(),
    )
    response = await search(service, timeout_ms=400, boosts={"centrality": True})
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert [(each.source, each.reason) for each in response.degraded] == [
        ("graph", "timed out"),
        ("boosts", "timed out"),
    ]


async def test_a_page_is_filled_up_past_documents_that_are_withheld_or_deleted(index: EmbeddedIndex) -> None:
    service = search_service(index, keyword=FixedSource("keyword", "s", "m", "a", "gone", "b"))
    response = await search(service, mode="keyword", limit=1, explain=True)
    assert [hit.id for hit in response.hits] == ["a"]
    rest = await search(service, mode="keyword", limit=5, cursor=response.next_cursor, explain=True)
    assert [hit.id for hit in rest.hits] == ["b"]
    assert rest.explain
    assert (rest.explain.removed.deleted, rest.explain.removed.withheld) == (1, 0)


def _raise(*_: object) -> object:
    raise ZeroDivisionError


async def test_a_strategy_that_cannot_choose_seeds_does_not_fail_the_response(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JointWalk, "seeds", _raise)
    response = await search(search_service(index), mode="hybrid")
    assert [hit.id for hit in response.hits] == ["a", "b"]
    assert [each.source for each in response.degraded] == ["fusion"]


async def test_explain_names_the_strategy_that_was_used_in_the_end(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JointWalk, "__call__", _raise)
    response = await search(search_service(index), mode="hybrid", explain=True)
    assert response.explain
    assert response.explain.fusion == "concatenate()"
