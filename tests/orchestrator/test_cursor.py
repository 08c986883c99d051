"""Pages: the same ranking, cut in pieces."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import Entry, Scope
from adapters.embedded import Library
from adapters.filter import Eq, normal
from orchestrator.caller import Caller
from orchestrator.contract import SearchRequest, SearchResponse
from orchestrator.cursor import Cursor, digest
from orchestrator.encode import Encoding
from orchestrator.engine import Engine
from orchestrator.plan import BadRequest
from orchestrator.settings import Settings
from tests.conftest import entry, unit
from tests.orchestrator.engines import CALLER, NOW, Broken, FixedVector, ask, engine, opened

pytestmark = pytest.mark.anyio
CURSOR = Cursor.at(20, b"12345678", b"abcdefgh", 3, 100, 20_000, "model")


def test_a_cursor_reads_back_what_it_wrote() -> None:
    assert Cursor.read(str(CURSOR), b"12345678", 100) == CURSOR
    assert len(str(CURSOR)) < 80


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "no cursor of ours"),
        ("é", "no cursor of ours"),
        ("AAAA", "no cursor of ours"),
        (str(msgspec.structs.replace(CURSOR, offset=-1)), "no cursor of ours"),
        (str(msgspec.structs.replace(CURSOR, depth=101)), "no cursor of ours"),
        (str(msgspec.structs.replace(CURSOR, depth=0)), "no cursor of ours"),
        (str(msgspec.structs.replace(CURSOR, offset=2**64 - 1)), "no cursor of ours"),
        (str(msgspec.structs.replace(CURSOR, day=10**9)), "no cursor of ours"),
        (str(msgspec.structs.replace(CURSOR, version=9)), "belongs to another request"),
        (str(msgspec.structs.replace(CURSOR, request=b"another.")), "belongs to another request"),
    ],
)
def test_what_is_no_cursor_of_this_request_is_refused(written: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Cursor.read(written, b"12345678", 100)


def test_whatever_decides_a_ranking_is_in_the_digest() -> None:
    plain, wanted = SearchRequest(query="q"), normal(Eq("collection", "a"))
    same = {
        digest(plain, wanted, CALLER),
        digest(SearchRequest(query="q", limit=50, explain=True, timeout_ms=9, cursor="x"), wanted, CALLER),
        digest(SearchRequest(query="q", weights={"graph": 1.0, "vector": 2.0}), wanted, CALLER),
        digest(SearchRequest(query="q", weights={"vector": 2.0, "graph": 1.0}), wanted, CALLER),
    }
    assert len(same) == 2
    others = [
        {"query": "r"}, {"mode": "vector"}, {"fusion": "rrf(k=1)"}, {"min_score": 0.1}, {"collapse": "none"},
        {"neighbors": 1}, {"boosts": {"recency": False}}, {"vector": (1.0,)},
    ]  # fmt: skip
    made = {digest(SearchRequest(**{"query": "q", **other}), wanted, CALLER) for other in others}  # type: ignore[arg-type]
    made.add(digest(plain, normal(Eq("collection", "b")), CALLER))
    made.add(digest(plain, wanted, Caller(Scope("other"), "normal")))
    made.add(digest(plain, wanted, replace(CALLER, clearance="restricted")))
    assert len(made) == len(others) + 3
    assert not made & same


async def pages(made: Engine, limit: int, **asked: object) -> list[SearchResponse]:
    answers = [await ask(made, limit=limit, **asked)]
    while answers[-1].next_cursor:
        answers.append(await ask(made, limit=limit, cursor=answers[-1].next_cursor, **asked))
    return answers


def star(number: int, **fields: object) -> Entry:
    return entry(f"d{number:03}", f"Alpha Centauri {'near ' * (number % 7)}", seed=number, **fields)


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    await made.write([star(number) for number in range(60)], ())
    return made


async def test_pages_are_the_pieces_of_one_ranking(library: Library) -> None:
    made = engine(library)
    whole = [hit.id for hit in (await ask(made, limit=50)).hits]
    answers = await pages(made, 7)
    assert [hit.id for answer in answers for hit in answer.hits][:50] == whole
    assert {len(answer.hits) for answer in answers[:-1]} == {7}
    assert len({hit.id for answer in answers for hit in answer.hits}) == 60


async def test_the_limit_may_change_from_page_to_page(library: Library) -> None:
    made = engine(library)
    first = await ask(made, limit=3)
    rest = await ask(made, limit=50, cursor=first.next_cursor)
    assert [hit.id for hit in (*first.hits, *rest.hits)] == [
        hit.id for answer in await pages(made, 50) for hit in answer.hits
    ][:53]


async def test_a_cursor_of_another_request_is_refused(library: Library) -> None:
    made = engine(library)
    first = await ask(made, limit=3)
    with pytest.raises(BadRequest, match="cursor: belongs to another request"):
        await ask(made, "another query", cursor=first.next_cursor)


async def test_a_write_between_two_pages_is_told(library: Library) -> None:
    made = engine(library)
    first = await ask(made, limit=3)
    assert first.degraded == ()
    await library.write([star(99)], ())
    second = await ask(made, limit=3, cursor=first.next_cursor)
    told = "documents were written since "
    assert [(each.source, each.reason[:29]) for each in second.degraded] == [("cursor", told)]
    third = await ask(made, limit=3, cursor=second.next_cursor)
    assert [each.source for each in third.degraded] == ["cursor"]


async def test_a_page_that_is_made_otherwise_than_the_first_is_told(library: Library) -> None:
    first = await ask(engine(library, vector=Broken()), limit=3, mode="hybrid")
    assert [each.source for each in first.degraded] == ["vector"]
    second = await ask(engine(library), limit=3, mode="hybrid", cursor=first.next_cursor)
    assert [each.source for each in second.degraded] == ["cursor"]
    assert "the first page was made otherwise" in second.degraded[0].reason
    again = await ask(engine(library, vector=Broken()), limit=3, mode="hybrid", cursor=first.next_cursor)
    assert [each.source for each in again.degraded] == ["vector"]
    other = Settings(source_timeout_ms=5_000, fusion="rrf(k=60)")
    plain = await ask(engine(library), limit=3)
    third = await ask(engine(library, settings=other), limit=3, cursor=plain.next_cursor)
    assert [each.source for each in third.degraded] == ["cursor"]


async def test_a_cursor_asks_for_nothing_that_a_request_may_not(library: Library) -> None:
    made = engine(library)
    first = await ask(made, limit=3, mode="keyword")
    held = msgspec.msgpack.decode(urlsafe_b64decode(first.next_cursor or ""), type=Cursor)
    for forged in ({"depth": 10**6}, {"depth": 151}, {"offset": 2**63}, {"day": -1}):
        written = urlsafe_b64encode(msgspec.msgpack.encode(msgspec.structs.replace(held, **forged))).decode()
        with pytest.raises(BadRequest, match="cursor: no cursor of ours"):
            await ask(made, limit=3, mode="keyword", cursor=written)
    beyond = str(msgspec.structs.replace(held, offset=999))
    assert (await ask(made, limit=3, mode="keyword", cursor=beyond)).hits == ()


async def test_the_next_page_has_the_vector_of_the_first_whatever_the_load(library: Library) -> None:
    """The table would say otherwise, and under load it is asked: but not for a page of what the model began."""

    class OtherTable:
        def encode(self, text: str) -> object:
            return unit(50)

    made = engine(library)
    made.roads.encoding = Encoding(FixedVector(), OtherTable(), "adaptive", 2, 10)  # type: ignore[arg-type]
    alone = [answer.hits for answer in await pages(made, 20, mode="vector")]
    first = await ask(made, limit=20, mode="vector")
    made.roads.encoding = Encoding(FixedVector(), OtherTable(), "adaptive", 2, 10)  # type: ignore[arg-type]
    made.in_flight = 9
    under_load = await ask(made, limit=20, mode="vector", cursor=first.next_cursor, explain=True)
    assert under_load.explain
    assert under_load.explain.encoder == "model"
    assert under_load.hits == alone[1]
    other = await ask(made, "another query", limit=20, mode="vector", explain=True)
    assert other.explain
    assert other.explain.encoder == "table"
    made.in_flight = 0
    after = await ask(made, "another query", limit=20, mode="vector", cursor=other.next_cursor, explain=True)
    assert after.explain
    assert after.explain.encoder == "table"


async def test_ages_are_counted_from_the_day_of_the_first_page(library: Library) -> None:
    made = engine(library)
    first = await ask(made, limit=3)
    made.now = lambda: 4_000_000_000.0
    second = await ask(made, limit=3, cursor=first.next_cursor)
    days = [msgspec.msgpack.decode(urlsafe_b64decode(page.next_cursor or ""))[6] for page in (first, second)]
    assert days == [int(NOW // 86_400)] * 2


chunks = st.tuples(
    st.sampled_from([None, None, "p", "q", "d001"]),
    st.integers(0, 4),
    st.none() | st.integers(0, 10),
    st.integers(1, 4),
    st.sampled_from(["documents", "other"]),
)


@settings(max_examples=60)
@given(
    st.lists(chunks, max_size=40),
    st.integers(1, 9),
    st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["auto", "hybrid", "vector", "graph", "keyword"]),
            "collapse": st.sampled_from(["none", "parent", "window"]),
            "fusion": st.sampled_from(["joint_walk", "rrf(k=60)", "dbsf()", "concatenate()"]),
            "min_score": st.sampled_from([0.0, 0.2]),
            "collections": st.sampled_from([None, ("documents", "other"), ("documents",)]),
            "boosts": st.sampled_from([{}, {"relationship": True, "importance": False}]),
        }
    ),
)
def test_no_page_loses_or_repeats_a_hit(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[object, ...]], limit: int, asked: dict[str, object]
) -> None:
    """Whatever the corpus and the request: the pages together are what one page of everything is."""

    async def check() -> None:
        library = opened(tmp_path_factory.mktemp("paged"))
        entries = [
            star(number, parent_id=parent, chunk_index=index, importance=importance, collection=collection)
            if seed % 2
            else entry(
                f"d{number:03}", f"Alpha Centauri and Proxima{seed}", seed=seed, parent_id=parent, chunk_index=index,
                importance=importance, collection=collection,
            )
            for number, (parent, index, importance, seed, collection) in enumerate(drawn)
        ]  # fmt: skip
        await library.write(entries, ())
        made = engine(library)
        whole = [hit for answer in await pages(made, 50, **asked) for hit in answer.hits]
        parts = [hit for answer in await pages(made, limit, **asked) for hit in answer.hits]
        assert msgspec.json.encode(parts) == msgspec.json.encode(whole)
        assert len({hit.id for hit in parts}) == len(parts)

    anyio.run(check)
