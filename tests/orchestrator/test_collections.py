"""Several collections at once: each is searched as deep as one alone, and none crowds out another."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Query, Unavailable
from adapters.embedded import Library
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from fusion import Ranking
from orchestrator.settings import Settings
from tests.conftest import entry
from tests.orchestrator.engines import Recorder, ask, engine, opened

pytestmark = pytest.mark.anyio
FOUR = ("memory", "history", "artifacts", "artifact_chunks")


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    crowd = [entry(f"h{n:02}", "Alpha Centauri Centauri", seed=1, collection="history") for n in range(40)]
    few = [entry(f"{name[0]}-{name}", "Alpha Centauri again and again", seed=2, collection=name) for name in FOUR]
    await made.write([*crowd, *few, entry("elsewhere", "Alpha Centauri", seed=1)], ())
    return made


class Counting:
    """A source, and how often it is asked at once."""

    def __init__(self, library: Library) -> None:
        self._inner = EmbeddedKeyword(library, KeywordPart())
        self.asked: list[Query] = []

    async def search(self, query: Query) -> Ranking:
        self.asked.append(query)
        return await self._inner.search(query)


async def test_each_collection_is_asked_as_deep_as_one_alone(library: Library) -> None:
    """A depth of ten, and forty documents of one collection before those of the others."""
    made = engine(library, settings=Settings(source_timeout_ms=5_000, depth=10))
    alone = await ask(made, limit=3, mode="keyword", collections=("history",), explain=True)
    assert alone.explain
    assert alone.explain.depth == 10
    answer = await ask(made, limit=3, mode="keyword", collections=FOUR, explain=True, collapse="none")
    assert answer.explain
    ranked = answer.explain.rankings["keyword"]
    assert {hit.id for hit in ranked} >= {"m-memory", "a-artifacts", "a-artifact_chunks"}
    assert [hit.rank for hit in ranked if hit.id == "m-memory"] == [1]
    assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)


async def test_by_reciprocal_ranks_the_first_of_each_collection_is_a_first(library: Library) -> None:
    """1/61 for each: that they tie is what RRF over the lists of all collections says."""
    answer = await ask(engine(library), mode="keyword", collections=FOUR, fusion="rrf(k=60)", limit=5)
    firsts = [hit for hit in answer.hits if hit.fusion_score == 1.0]
    assert {hit.collection for hit in firsts} == set(FOUR)
    assert all(share.contribution == 1 / 61 for hit in firsts if (share := hit.sources["keyword"]))


async def test_the_text_sources_are_asked_once_for_each_and_the_graph_once(library: Library) -> None:
    keyword, graph = Counting(library), Recorder(library)
    made = engine(library, keyword=keyword, graph=graph)
    answer = await ask(made, mode="hybrid", collections=(*FOUR, "memory"), limit=50)
    assert len(keyword.asked) == 4
    assert len(graph.asked) == 1
    assert {hit.collection for hit in answer.hits} == set(FOUR)
    await ask(made, mode="hybrid")
    assert (len(keyword.asked), len(graph.asked)) == (5, 2)


async def test_one_collection_works_by_itself(library: Library) -> None:
    for mode in ("auto", "hybrid", "vector", "graph", "keyword"):
        answer = await ask(engine(library), mode=mode, collections=("memory",))
        assert [hit.id for hit in answer.hits] == ["m-memory"]


async def test_the_query_is_encoded_once(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine(library)
    encoded: list[str] = []
    encode = made.roads.encoding.encode

    def watched(text: str, in_flight: int, by: str | None = None) -> object:
        encoded.append(text)
        return encode(text, in_flight, by)

    monkeypatch.setattr(made.roads.encoding, "encode", watched)
    await ask(made, mode="vector", collections=FOUR)
    assert encoded == ["alpha centauri"]


async def test_a_source_that_fails_for_one_collection_has_failed(library: Library) -> None:
    class Partly(Counting):
        async def search(self, query: Query) -> Ranking:
            if len(self.asked) == 2:
                raise Unavailable("half of it is gone")
            return await super().search(query)

    answer = await ask(engine(library, keyword=Partly(library)), mode="hybrid", collections=FOUR)
    assert [(each.source, each.reason) for each in answer.degraded] == [("keyword", "half of it is gone")]
    assert answer.hits
