"""A page is full if so many documents match, however many chunks of one document match better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from adapters.engine import EmbeddedIndex
from adapters.ports import VectorRecord
from fusion.strategy import STRATEGIES
from orchestrator.service.search import SearchService
from tests.conftest import vector_record
from tests.orchestrator.services import SETTINGS, FailingSource, empty_index, search, search_service

pytestmark = pytest.mark.anyio

DEPTH = 20
OTHERS = 11


def crowd(chunks: int, with_positions: bool = True) -> Sequence[VectorRecord]:
    """Chunks of one document that match better than eleven other documents do."""
    of_one = [
        vector_record(
            f"chunk-{n:04}", "alpha centauri alpha centauri", seed=1, parent_id="book",
            chunk_index=n if with_positions else None,
        )
        for n in range(chunks)
    ]  # fmt: skip
    others = [vector_record(f"other-{n:02}", f"alpha and {n} other words here", seed=2 + n) for n in range(OTHERS)]
    return [*of_one, *others]


async def indexed(folder: Path, records: Sequence[VectorRecord]) -> EmbeddedIndex:
    index = empty_index(folder)
    await index.write(records, ())
    return index


def shallow(index: EmbeddedIndex, **sources: object) -> SearchService:
    """A service that requests few documents from each source."""
    return search_service(index, settings=SETTINGS.changed(candidates_per_source=DEPTH, max_limit=DEPTH), **sources)


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
@pytest.mark.parametrize("strategy", [None, *sorted(STRATEGIES)])
async def test_a_page_is_filled_in_every_mode_and_strategy(tmp_path: Path, mode: str, strategy: str | None) -> None:
    service = shallow(await indexed(tmp_path, crowd(60)))
    response = await search(service, mode=mode, fusion=strategy, collapse="parent", limit=12)
    assert len({hit.parent_id or hit.id for hit in response.hits}) == len(response.hits) == 1 + OTHERS
    assert response.hits[0].parent_id == "book"
    scores = [hit.score for hit in response.hits]
    assert scores == sorted(scores, reverse=True)
    assert not response.degraded


@pytest.mark.parametrize("chunks", [19, 20, 21, 150, 1_000])
async def test_a_page_is_filled_for_any_number_of_chunks(tmp_path: Path, chunks: int) -> None:
    response = await search(shallow(await indexed(tmp_path, crowd(chunks))), collapse="parent", limit=12)
    assert len(response.hits) == 12


async def test_windows_of_chunks_without_a_position_are_filled_up(tmp_path: Path) -> None:
    service = shallow(await indexed(tmp_path, crowd(60, with_positions=False)))
    assert len((await search(service, collapse="window", limit=12)).hits) == 12


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid", "auto"])
async def test_the_first_hits_do_not_depend_on_the_limit(tmp_path: Path, mode: str) -> None:
    service = shallow(await indexed(tmp_path, crowd(60)))
    longest = [hit.id for hit in (await search(service, mode=mode, collapse="parent", limit=20)).hits]
    for limit in (1, 2, 5, 12):
        hits = (await search(service, mode=mode, collapse="parent", limit=limit)).hits
        assert [hit.id for hit in hits] == longest[:limit]


async def test_pages_continue_where_the_last_one_ended(tmp_path: Path) -> None:
    service = shallow(await indexed(tmp_path, crowd(60)))
    first = await search(service, collapse="parent", limit=1)
    ids = [first.hits[0].id]
    cursor = first.next_cursor
    while cursor:
        page = await search(service, collapse="parent", limit=4, cursor=cursor)
        ids += [hit.id for hit in page.hits]
        cursor = page.next_cursor
    assert len(set(ids)) == len(ids) == 1 + OTHERS


async def test_many_crowds_are_reported(tmp_path: Path) -> None:
    """Each search finds the chunks of one more document."""
    records = [
        vector_record(f"{book}-{n}", "alpha " * (9 - book) + "beta " * book, seed=book + 1, parent_id=f"book {book}")
        for book in range(8)
        for n in range(DEPTH)
    ]
    response = await search(shallow(await indexed(tmp_path, records)), "alpha", mode="keyword", collapse="parent")
    assert 4 <= len(response.hits) < 8
    assert [each.source for each in response.degraded] == ["collapse"]


async def test_a_failed_further_search_leaves_the_hits(tmp_path: Path) -> None:
    index = await indexed(tmp_path, crowd(60))
    found = shallow(index).retrieval.calls["keyword"].retriever

    class Once:
        searches = 0

        async def search(self, query: object) -> object:
            self.searches += 1
            return await (FailingSource() if self.searches > 1 else found).search(query)  # type: ignore[arg-type]

    response = await search(shallow(index, keyword=Once()), mode="keyword", collapse="parent")
    assert len(response.hits) == 1
    assert [each.source for each in response.degraded] == ["collapse"]
    assert response.degraded[0].reason.startswith("the page is not full: ")
