"""An artifact of six chunks, found by its fourth."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from adapters import Unavailable
from adapters.embedded import Library
from orchestrator.neighbors import BOUNDARY
from tests.conftest import SCOPE, entry
from tests.orchestrator.engines import Forgetful, ask, engine, opened

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
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    chunk = {"collection": "artifact_chunks", "parent_id": "artifact", "url": "https://example.org/a"}
    chunks = [entry(f"c{n}", text, seed=1 + (n - 3) % 6, chunk_index=n, **chunk) for n, text in enumerate(TEXTS)]
    # The whole document says it more often than its chunk does.
    whole = entry("artifact", " ".join([*TEXTS, "xylophone " * 9]), seed=1, collection="artifacts")
    await made.write([*chunks, whole, entry("other", "Another xylophone, of no artifact.", seed=9)], ())
    return made


async def test_a_hit_is_read_with_its_neighbours_in_order(library: Library) -> None:
    (hit, *_) = (await ask(engine(library), "xylophone tuned", mode="keyword", neighbors=1)).hits
    assert (hit.id, hit.chunk_index, hit.parent_id, hit.window_id) == ("c3", 3, "artifact", "artifact:2-4")
    assert hit.text == "Nails are bought.\n[CHUNK BOUNDARY]\nThe xylophone is tuned.\n[CHUNK BOUNDARY]\nPaint dries."
    assert hit.text[slice(*hit.span)] == "The xylophone is tuned."
    assert hit.url == "https://example.org/a"


async def test_it_comes_once_and_the_whole_document_never_wins_over_it(library: Library) -> None:
    made = engine(library)
    plain = [hit.id for hit in (await ask(made, "xylophone", mode="keyword", collapse="none")).hits]
    assert plain[0] == "artifact"
    answer = await ask(made, "xylophone", mode="keyword", explain=True)
    assert sorted(hit.id for hit in answer.hits) == ["c3", "other"]
    assert answer.explain
    assert answer.explain.removed.collapsed == {"artifact": "c3"}
    every = await ask(made, "xylophone", mode="hybrid")
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
async def test_the_first_and_the_last_have_fewer(library: Library, query: str, count: int, expected: list[int]) -> None:
    answer = await ask(engine(library), query, mode="keyword", neighbors=count, collections=("artifact_chunks",))
    assert answer.hits[0].text == BOUNDARY.join(TEXTS[n] for n in expected)


async def test_what_is_missing_is_left_out(library: Library) -> None:
    await library.write([], [(SCOPE.tenant, SCOPE.environment, "c2")])
    (hit, *_) = (await ask(engine(library), "xylophone tuned", mode="keyword", neighbors=2)).hits
    assert hit.text == BOUNDARY.join([TEXTS[1], TEXTS[3], TEXTS[4], TEXTS[5]])
    assert hit.text[slice(*hit.span)] == TEXTS[3]


async def test_a_neighbour_that_the_caller_may_not_see_is_left_out(library: Library) -> None:
    secret = entry("c2", "Nails are bought.", seed=3, chunk_index=2, parent_id="artifact", sensitivity="restricted")
    elsewhere = entry("d4", "Not of this collection.", seed=3, chunk_index=4, parent_id="artifact", collection="memory")
    await library.write([secret, elsewhere], ())
    (hit, *_) = (await ask(engine(library), "xylophone tuned", mode="keyword", neighbors=1)).hits
    assert hit.text == BOUNDARY.join([TEXTS[3], TEXTS[4]])


async def test_of_two_that_claim_one_place_the_smaller_id_stands(library: Library) -> None:
    twin = entry("c2-again", "Nails, again.", seed=3, chunk_index=2, parent_id="artifact", collection="artifact_chunks")
    await library.write([twin], ())
    (hit, *_) = (await ask(engine(library), "xylophone tuned", mode="keyword", neighbors=1)).hits
    assert hit.text.startswith("Nails are bought.")


async def test_a_hit_that_is_no_chunk_is_left_as_it_is(library: Library) -> None:
    answer = await ask(engine(library, keyword=Forgetful("other")), "xylophone", mode="keyword", neighbors=3)
    assert [(hit.text, hit.span, hit.window_id) for hit in answer.hits] == [
        ("Another xylophone, of no artifact.", (0, 34), None)
    ]


async def test_without_the_neighbours_the_hits_stand_and_the_answer_says_so(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> object:
        raise Unavailable("no such luck")

    monkeypatch.setattr(library, "find", fails)
    answer = await ask(engine(library), "xylophone tuned", mode="keyword", neighbors=1)
    assert answer.hits[0].text == TEXTS[3]
    assert [(each.source, each.reason) for each in answer.degraded] == [("neighbors", "no such luck")]


async def test_windows_of_one_parent_are_hits_of_their_own(library: Library) -> None:
    query = "wood planks nails xylophone paint sold"
    answer = await ask(engine(library), query, mode="keyword", collapse="window", collections=("artifact_chunks",))
    indexes = sorted(hit.chunk_index for hit in answer.hits if hit.chunk_index is not None)
    assert len(indexes) > 1
    assert all(other - one > 1 for one, other in pairwise(indexes))
    wide = await ask(
        engine(library), query, mode="keyword", collapse="window", neighbors=10, collections=("artifact_chunks",)
    )
    assert len(wide.hits) == 1


async def test_many_parents_with_many_chunks_lose_no_neighbour(tmp_path: Path) -> None:
    """Hits far apart in each parent: what is read is what is wanted, not every parent's every place."""
    made = opened(tmp_path)
    chunks = [
        entry(f"{p}-{n}", f"needle{p} text" if n == 7 * p + 10 else "hay", seed=n, parent_id=f"p{p}", chunk_index=n)
        for p in range(20)
        for n in range(160)
    ]
    await made.write(chunks, ())
    query = " ".join(f"needle{p}" for p in range(20))
    answer = await ask(engine(made), query, mode="keyword", limit=20, neighbors=10)
    assert len(answer.hits) == 20
    assert {hit.text.count("[CHUNK BOUNDARY]") for hit in answer.hits} == {20}
