"""An artifact of six chunks, found by its fourth."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from adapters import Record, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.engine.view import IndexView
from adapters.model.filter import Filter
from fusion.doc_ids import doc_id
from orchestrator.results.neighbors import BOUNDARY
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.services import FixedSource, empty_index, search, search_service

pytestmark = pytest.mark.anyio

TEXTS = [
    "Wood is cut.",
    "Planks are sawn.",
    "Nails are bought.",
    "The xylophone is tuned.",
    "Paint dries.",
    "It is sold.",
]


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    chunk = {"collection": "artifact_chunks", "parent_id": "artifact", "url": "https://example.org/a"}
    chunks = [
        vector_record(f"c{n}", text, seed=1 + (n - 3) % 6, chunk_index=n, **chunk) for n, text in enumerate(TEXTS)
    ]
    # The parent contains the word more often than its chunk does.
    parent = vector_record("artifact", " ".join([*TEXTS, "xylophone " * 9]), seed=1, collection="artifacts")
    await index.write([*chunks, parent, vector_record("other", "Another xylophone, of no artifact.", seed=9)], ())
    return index


async def test_a_hit_contains_its_neighbours_in_order(index: EmbeddedIndex) -> None:
    (hit, *_) = (await search(search_service(index), "xylophone tuned", mode="keyword", neighbors=1)).hits
    assert (hit.id, hit.chunk_index, hit.parent_id, hit.window_id) == ("c3", 3, "artifact", "artifact:2-4")
    assert hit.text == "Nails are bought.\n[CHUNK BOUNDARY]\nThe xylophone is tuned.\n[CHUNK BOUNDARY]\nPaint dries."
    assert hit.text[slice(*hit.span)] == "The xylophone is tuned."
    assert hit.neighbor_ids == ("c2", "c4")
    assert hit.url == "https://example.org/a"


async def test_a_parent_is_one_hit_and_is_represented_by_its_best_chunk(index: EmbeddedIndex) -> None:
    service = search_service(index)
    plain = [hit.id for hit in (await search(service, "xylophone", mode="keyword", collapse="none")).hits]
    assert plain[0] == "artifact"
    response = await search(service, "xylophone", mode="keyword", collapse="parent", explain=True)
    assert sorted(hit.id for hit in response.hits) == ["c3", "other"]
    assert response.explain
    assert response.explain.removed.collapsed == {"artifact": "c3"}
    every = await search(service, "xylophone", mode="hybrid")
    assert [hit.id for hit in every.hits if (hit.parent_id or hit.id) == "artifact"] == ["c3"]


@pytest.mark.parametrize(
    ("query", "count", "expected"),
    [
        ("wood", 1, [0, 1]),
        ("sold", 2, [3, 4, 5]),
        ("nails", 10, [0, 1, 2, 3, 4, 5]),
        ("nails", 0, [2]),
    ],
)
async def test_the_first_and_the_last_chunk_have_fewer_neighbours(
    index: EmbeddedIndex, query: str, count: int, expected: list[int]
) -> None:
    service = search_service(index)
    response = await search(service, query, mode="keyword", neighbors=count, collections=("artifact_chunks",))
    assert response.hits[0].text == BOUNDARY.join(TEXTS[n] for n in expected)


async def test_a_missing_neighbour_is_left_out(index: EmbeddedIndex) -> None:
    await index.write([], [(SCOPE.tenant, SCOPE.environment, doc_id("c2", "artifact_chunks"))])
    (hit, *_) = (await search(search_service(index), "xylophone tuned", mode="keyword", neighbors=2)).hits
    assert hit.text == BOUNDARY.join([TEXTS[1], TEXTS[3], TEXTS[4], TEXTS[5]])
    assert hit.text[slice(*hit.span)] == TEXTS[3]


async def test_a_neighbour_that_the_principal_may_not_see_is_left_out(index: EmbeddedIndex) -> None:
    secret = vector_record(
        "c2",
        "Nails are bought.",
        seed=3,
        chunk_index=2,
        parent_id="artifact",
        sensitivity="restricted",
        collection="artifact_chunks",
    )
    elsewhere = vector_record(
        "d4", "Not of this collection.", seed=3, chunk_index=4, parent_id="artifact", collection="memory"
    )
    await index.write([secret, elsewhere], ())
    (hit, *_) = (await search(search_service(index), "xylophone tuned", mode="keyword", neighbors=1)).hits
    assert hit.text == BOUNDARY.join([TEXTS[3], TEXTS[4]])


async def test_of_two_chunks_with_one_position_the_smaller_id_is_used(index: EmbeddedIndex) -> None:
    twin = vector_record(
        "c2-again", "Nails, again.", seed=3, chunk_index=2, parent_id="artifact", collection="artifact_chunks"
    )
    await index.write([twin], ())
    (hit, *_) = (await search(search_service(index), "xylophone tuned", mode="keyword", neighbors=1)).hits
    assert hit.text.startswith("Nails are bought.")


async def test_a_hit_that_is_no_chunk_stays_as_it_is(index: EmbeddedIndex) -> None:
    service = search_service(index, keyword=FixedSource("keyword", "other"))
    response = await search(service, "xylophone", mode="keyword", neighbors=3)
    assert [(hit.text, hit.span, hit.window_id) for hit in response.hits] == [
        ("Another xylophone, of no artifact.", (0, 34), None)
    ]


async def test_if_the_neighbours_cannot_be_read_the_hits_stay_and_it_is_reported(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: IndexView, condition: Filter, limit: int) -> list[Record]:
        raise Unavailable("no such luck")

    monkeypatch.setattr(IndexView, "find", fails)
    response = await search(search_service(index), "xylophone tuned", mode="keyword", neighbors=1)
    assert response.hits[0].text == TEXTS[3]
    assert [(each.source, each.reason) for each in response.degraded] == [("neighbors", "no such luck")]


async def test_windows_of_one_parent_are_separate_hits(index: EmbeddedIndex) -> None:
    query = "wood planks nails xylophone paint sold"
    service = search_service(index)
    response = await search(service, query, mode="keyword", collapse="window", collections=("artifact_chunks",))
    indexes = sorted(hit.chunk_index for hit in response.hits if hit.chunk_index is not None)
    assert len(indexes) > 1
    assert all(other - one > 1 for one, other in pairwise(indexes))
    wide = await search(
        service, query, mode="keyword", collapse="window", neighbors=10, collections=("artifact_chunks",)
    )
    assert len(wide.hits) == 1


async def test_no_neighbour_is_missing_with_many_parents_of_many_chunks(tmp_path: Path) -> None:
    """Hits far apart in each parent: exactly the positions around them are read, not all positions of all parents."""
    index = empty_index(tmp_path)
    chunks = [
        vector_record(
            f"{p}-{n}", f"needle{p} text" if n == 7 * p + 10 else "hay", seed=n, parent_id=f"p{p}", chunk_index=n
        )
        for p in range(20)
        for n in range(160)
    ]
    await index.write(chunks, ())
    query = " ".join(f"needle{p}" for p in range(20))
    response = await search(search_service(index), query, mode="keyword", limit=20, neighbors=10)
    assert len(response.hits) == 20
    assert {hit.text.count("[CHUNK BOUNDARY]") for hit in response.hits} == {20}
