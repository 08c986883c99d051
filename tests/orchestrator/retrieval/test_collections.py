"""Several collections at once: each is searched as deep as one alone, and none crowds out another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from adapters import Record, Scope, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.model.filter import Eq, Filter
from adapters.ports import SourceQuery
from fusion.columns import Documents, Ranking
from orchestrator.retrieval.query_encoder import EncodedQuery, QueryEncoders
from orchestrator.schema.search import EncoderName
from tests.conftest import vector_record
from tests.orchestrator.services import (
    SETTINGS,
    RecordingSource,
    empty_index,
    graph_source,
    keyword_source,
    search,
    search_service,
)

pytestmark = pytest.mark.anyio
FOUR = ("memory", "history", "artifacts", "artifact_chunks")


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    crowd = [vector_record(f"h{n:02}", "Alpha Centauri Centauri", seed=1, collection="history") for n in range(40)]
    few = [
        vector_record(f"{name[0]}-{name}", "Alpha Centauri again and again", seed=2, collection=name) for name in FOUR
    ]
    await index.write([*crowd, *few, vector_record("elsewhere", "Alpha Centauri", seed=1)], ())
    return index


async def test_each_collection_is_searched_as_deep_as_one_alone(index: EmbeddedIndex) -> None:
    """A depth of ten, and forty documents of one collection before those of the others."""
    service = search_service(index, settings=SETTINGS.changed(candidates_per_source=10, max_limit=10))
    alone = await search(service, limit=3, mode="keyword", collections=("history",), explain=True)
    assert alone.explain
    assert alone.explain.depth == 10
    response = await search(service, limit=3, mode="keyword", collections=FOUR, explain=True, collapse="none")
    assert response.explain
    ranked = response.explain.rankings["keyword"]
    assert {hit.id for hit in ranked} >= {"m-memory", "a-artifacts", "a-artifact_chunks"}
    assert [hit.rank for hit in ranked if hit.id == "m-memory"] == [1]
    assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)


async def test_by_reciprocal_ranks_the_first_document_of_each_collection_has_rank_1(index: EmbeddedIndex) -> None:
    """1/61 for each: RRF over the rankings of all collections gives them equal scores."""
    response = await search(search_service(index), mode="keyword", collections=FOUR, fusion="rrf(k=60)", limit=5)
    firsts = [hit for hit in response.hits if hit.fusion_score == 1.0]
    assert {hit.collection for hit in firsts} == set(FOUR)
    assert all(part.contribution == 1 / 61 for hit in firsts if (part := hit.sources["keyword"]))


async def test_text_sources_are_searched_once_a_collection_and_the_graph_once(index: EmbeddedIndex) -> None:
    keyword, graph = keyword_source(index), graph_source(index)
    service = search_service(index, keyword=keyword, graph=graph)
    response = await search(service, mode="hybrid", collections=(*FOUR, "memory"), limit=50)
    assert len(keyword.queries) == 4
    assert len(graph.queries) == 1
    assert {hit.collection for hit in response.hits} == set(FOUR)
    await search(service, mode="hybrid", collections=("memory",))
    assert (len(keyword.queries), len(graph.queries)) == (5, 2)


async def test_without_names_each_collection_is_a_list_by_itself(index: EmbeddedIndex) -> None:
    """All but memory and history: the same as naming them, whatever filter the request has."""
    crowd = [vector_record(f"x{n:02}", "Alpha Centauri Centauri", seed=1, tags=("t",)) for n in range(40)]
    few = [vector_record(f"y-{name}", "Alpha Centauri", seed=2, collection=name, tags=("t",)) for name in FOUR]
    await index.write([*crowd, *few], ())
    named = ("artifact_chunks", "artifacts", "documents")
    for fields in ({}, {"filter": Eq("tags", "t")}, {"include_memory": True}):
        keyword, graph = keyword_source(index), graph_source(index)
        settings = SETTINGS.changed(candidates_per_source=10, max_limit=10)
        service = search_service(index, settings=settings, keyword=keyword, graph=graph)
        of_all = await search(service, mode="hybrid", profile="rrf", limit=3, **fields)
        searched = len(keyword.queries)
        assert searched == (4 if "include_memory" in fields else 3)
        assert len(graph.queries) == 1
        assert not of_all.degraded
        by_name = await search(service, mode="hybrid", profile="rrf", limit=3, collections=named, **fields)
        assert [(hit.id, hit.score, hit.sources) for hit in of_all.hits] == [
            (hit.id, hit.score, hit.sources) for hit in by_name.hits
        ]
    firsts = await search(service, mode="keyword", fusion="rrf(k=60)", limit=3)
    assert {hit.collection for hit in firsts.hits} == set(named)


async def test_a_new_collection_is_searched_at_once_and_one_that_may_not_be_seen_never(index: EmbeddedIndex) -> None:
    keyword = keyword_source(index)
    service = search_service(index, keyword=keyword)
    await search(service, mode="keyword")
    assert len(keyword.queries) == 3
    await search(service, mode="keyword", cache="refresh")
    assert len(keyword.queries) == 6
    hidden = vector_record("hidden", "Alpha Centauri", collection="hidden", sensitivity="restricted")
    await index.write([hidden, vector_record("new", "Alpha Centauri", collection="new")], ())
    response = await search(service, mode="keyword", limit=50)
    assert len(keyword.queries) == 10
    assert "new" in {hit.id for hit in response.hits}


async def test_one_collection_needs_one_search_and_more_than_five_are_one_list(tmp_path: Path) -> None:
    index = empty_index(tmp_path)
    keyword = keyword_source(index)
    service = search_service(index, keyword=keyword)
    for count, searches in ((1, 1), (5, 5), (6, 1), (20, 1)):
        await index.write([vector_record(f"{n:02}", "Alpha Centauri", collection=f"c{n:02}") for n in range(count)], ())
        keyword.queries.clear()
        assert len((await search(service, mode="keyword", limit=50, collapse="none")).hits) == count
        assert len(keyword.queries) == searches


async def test_the_names_are_read_again_if_the_request_does_not_want_what_is_cached(index: EmbeddedIndex) -> None:
    """Documents on a server, and a write of another machine that is not reported yet: the data version is the same."""
    keyword = keyword_source(index)
    service = search_service(index, keyword=keyword, memo_ttl_s=60.0, documents=index)
    service.data_versions.current = lambda _: ("unchanged",)  # type: ignore[method-assign]
    await search(service, mode="keyword")
    await index.write([vector_record("new", "Alpha Centauri", collection="new")], ())
    for cache, searches in (("use", 0), ("bypass", 4), ("refresh", 4)):
        keyword.queries.clear()
        await search(service, mode="keyword", cache=cache)
        assert len(keyword.queries) == searches


class FailingCounts:
    """A reader of an index whose collections can be counted or not."""

    def __init__(self, index: EmbeddedIndex) -> None:
        self._index = index
        self.fails = False
        self.calls = 0

    async def counts(self, field: str, condition: Filter) -> Mapping[str, int]:
        self.calls += 1
        if self.fails:
            raise Unavailable("no aggregation")
        return await self._index.counts(field, condition)

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        return await self._index.fetch(scope, documents)


async def test_names_that_are_not_the_newest_miss_no_document(index: EmbeddedIndex) -> None:
    documents, keyword = FailingCounts(index), keyword_source(index)
    service = search_service(index, documents=documents, keyword=keyword)  # type: ignore[arg-type]
    before = await search(service, mode="keyword", limit=50)
    documents.fails = True
    keyword.queries.clear()
    same = await search(service, mode="keyword", limit=50)
    assert len(keyword.queries) == 4  # the last one: all collections but the known ones
    assert (same.hits, same.degraded) == (before.hits, ())
    await index.write([vector_record("new", "Alpha Centauri", collection="new")], ())
    assert "new" in {hit.id for hit in (await search(service, mode="keyword", limit=50)).hits}
    assert {hit.collection for hit in before.hits}.isdisjoint({"memory", "history"})


async def test_requests_that_wait_for_the_names_wait_for_one_reading(index: EmbeddedIndex) -> None:
    documents, release = FailingCounts(index), asyncio.Event()
    counts = documents.counts

    async def slow(field: str, condition: Filter) -> Mapping[str, int]:
        await release.wait()
        return await counts(field, condition)

    documents.counts = slow  # type: ignore[method-assign]
    service = search_service(index, documents=documents)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(search(service, mode="keyword", timeout_ms=60_000)) for _ in range(5)]
        await anyio.wait_all_tasks_blocked()
        release.set()
    assert documents.calls == 1
    assert all(not task.result().degraded for task in tasks)


async def test_a_filter_by_a_number_and_one_by_a_truth_value_are_two_filters(index: EmbeddedIndex) -> None:
    """In Python ``1.0 == True``."""
    values: dict[str, bool | int] = {"truth": True, "number": 1}
    await index.write(
        [vector_record(id_, "Alpha Centauri", metadata={"flag": value}) for id_, value in values.items()], ()
    )
    service = search_service(index)
    for value, id_ in ((True, "truth"), (1.0, "number"), (True, "truth")):
        response = await search(service, mode="keyword", filter=Eq("metadata.flag", value))
        assert [hit.id for hit in response.hits] == [id_]


async def test_a_source_alone_keeps_its_own_order_over_several_collections(index: EmbeddedIndex) -> None:
    for profile in ("joint", "rrf", "weighted_rrf"):
        response = await search(search_service(index), mode="keyword", profile=profile, limit=50)
        scores = [part.score for hit in response.hits if (part := hit.sources["keyword"])]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) > 1


async def test_if_the_names_cannot_be_read_all_collections_are_one_list_and_the_response_says_so(
    index: EmbeddedIndex,
) -> None:
    documents, keyword = FailingCounts(index), keyword_source(index)
    documents.fails = True
    service = search_service(index, documents=documents, keyword=keyword)  # type: ignore[arg-type]
    response = await search(service, mode="keyword")
    assert [(each.source, each.reason) for each in response.degraded] == [("collections", "no aggregation")]
    assert len(keyword.queries) == 1
    assert response.hits


async def test_one_collection_alone_can_be_searched_in_every_mode(index: EmbeddedIndex) -> None:
    for mode in ("auto", "hybrid", "vector", "graph", "keyword"):
        response = await search(search_service(index), mode=mode, collections=("memory",))
        assert [hit.id for hit in response.hits] == ["m-memory"]


async def test_the_query_is_encoded_once(index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = QueryEncoders.encode

    async def recorded(self: QueryEncoders, text: str, encoder: EncoderName, tenant: str) -> EncodedQuery:
        encoded.append(text)
        return await encode(self, text, encoder, tenant)

    monkeypatch.setattr(QueryEncoders, "encode", recorded)
    await search(search_service(index), mode="vector", collections=FOUR)
    assert encoded == ["alpha centauri"]


async def test_a_source_that_fails_for_one_collection_has_failed(index: EmbeddedIndex) -> None:
    class PartlyFailingSource(RecordingSource):
        async def search(self, query: SourceQuery) -> Ranking:
            if len(self.queries) == 2:
                raise Unavailable("half of it is gone")
            return await super().search(query)

    service = search_service(index, keyword=PartlyFailingSource(keyword_source(index)))
    response = await search(service, mode="hybrid", collections=FOUR)
    assert [(each.source, each.reason) for each in response.degraded] == [("keyword", "half of it is gone")]
    assert response.hits


async def test_memory_is_searched_beside_the_others_if_the_request_includes_it(index: EmbeddedIndex) -> None:
    service = search_service(index)
    without = {hit.collection for hit in (await search(service, mode="hybrid", limit=50)).hits}
    assert without
    assert not without & {"memory", "history"}
    included = {hit.collection for hit in (await search(service, limit=50, mode="hybrid", include_memory=True)).hits}
    assert included == without | {"memory"}
    named = await search(service, limit=50, mode="hybrid", collections=("artifacts",), include_memory=True)
    assert {hit.collection for hit in named.hits} == {"artifacts", "memory"}


async def test_a_hit_names_every_list_that_it_was_found_in(index: EmbeddedIndex) -> None:
    response = await search(search_service(index), mode="hybrid", collections=FOUR, limit=50)
    for hit in response.hits:
        assert hit.found_in == tuple(f"{name}/{hit.collection}" for name, found in hit.sources.items() if found)
    assert any(len(hit.found_in) > 1 for hit in response.hits)


async def test_in_profile_rrf_all_sources_are_asked_at_the_same_time(index: EmbeddedIndex) -> None:
    """Each search waits until the two others have begun; one after the other would never end."""
    begun = asyncio.Barrier(3)

    class MeetingSource:
        def __init__(self, name: str) -> None:
            self._ranking = Ranking.of_ids(name, ["a-artifacts"], [1.0])

        async def search(self, query: SourceQuery) -> Ranking:
            await begun.wait()
            return self._ranking

    sources = {name: MeetingSource(name) for name in ("vector", "graph", "keyword")}
    service = search_service(index, **sources)
    one = ("artifacts",)
    response = await search(service, mode="hybrid", profile="rrf", collections=one, timeout_ms=10_000)
    assert not response.degraded
    assert response.route.sources == ("vector", "graph", "keyword")
