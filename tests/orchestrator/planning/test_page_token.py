"""Pages: the same ranking, cut into parts."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import Scope
from adapters.engine import EmbeddedIndex
from adapters.model.filter import Eq, normal
from adapters.ports import VectorRecord
from cache import hash_key
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.page_token import PageToken
from orchestrator.planning.planner import ranking_identity
from orchestrator.planning.query_vector import unit_vector
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.search import SearchService
from orchestrator.settings.groups import Settings
from tests.conftest import vector_record
from tests.orchestrator.services import (
    NOW,
    PRINCIPAL,
    SETTINGS,
    FailingSource,
    FixedStaticEncoder,
    empty_index,
    search,
    search_service,
)

pytestmark = pytest.mark.anyio
TOKEN = PageToken.at(20, b"12345678", b"abcdefgh", 3, 100, 20_000, "model")
NOT_A_CURSOR = "not a cursor of this service"


def test_a_decoded_token_is_the_one_that_was_encoded() -> None:
    assert PageToken.decode(TOKEN.encode(), b"12345678", 100) == TOKEN
    assert len(TOKEN.encode()) < 80


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", NOT_A_CURSOR),
        ("é", NOT_A_CURSOR),
        ("AAAA", NOT_A_CURSOR),
        (msgspec.structs.replace(TOKEN, offset=-1).encode(), NOT_A_CURSOR),
        (msgspec.structs.replace(TOKEN, depth=101).encode(), NOT_A_CURSOR),
        (msgspec.structs.replace(TOKEN, depth=0).encode(), NOT_A_CURSOR),
        (msgspec.structs.replace(TOKEN, offset=2**64 - 1).encode(), NOT_A_CURSOR),
        (msgspec.structs.replace(TOKEN, day=10**9).encode(), NOT_A_CURSOR),
        (msgspec.structs.replace(TOKEN, format=9).encode(), "belongs to another request"),
        (msgspec.structs.replace(TOKEN, ranking_hash=b"another.").encode(), "belongs to another request"),
    ],
)
def test_text_that_is_no_token_of_this_request_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PageToken.decode(text, b"12345678", 100)


def test_the_ranking_hash_covers_everything_that_decides_a_ranking() -> None:
    plain, condition = SearchRequest(query="q"), normal(Eq("collection", "a"))

    def hashed(
        request: SearchRequest, condition: object = condition, collapse: str = "parent", principal: object = PRINCIPAL
    ) -> bytes:
        vector = None if request.vector is None else unit_vector(request.vector, 1)
        return hash_key(*ranking_identity(request, vector, condition, collapse, principal))  # type: ignore[arg-type]

    same = {
        hashed(plain),
        hashed(SearchRequest(query="q", limit=50, explain=True, timeout_ms=9, cursor="x")),
        hashed(SearchRequest(query="q", weights={"graph": 1.0, "vector": 2.0})),
        hashed(SearchRequest(query="q", weights={"vector": 2.0, "graph": 1.0})),
    }
    assert len(same) == 2
    changes = [
        {"query": "r"}, {"mode": "vector"}, {"fusion": "rrf(k=1)"}, {"min_score": 0.1}, {"profile": "rrf"},
        {"neighbors": 1}, {"boosts": {"recency": False}}, {"vector": (1.0,)},
    ]  # fmt: skip
    others = {hashed(SearchRequest(**{"query": "q", **changed})) for changed in changes}  # type: ignore[arg-type]
    others.add(hashed(plain, collapse="none"))
    others.add(hashed(plain, normal(Eq("collection", "b"))))
    others.add(hashed(plain, principal=replace(PRINCIPAL, scope=Scope("other"))))
    others.add(hashed(plain, principal=replace(PRINCIPAL, clearance="restricted")))
    assert len(others) == len(changes) + 4
    assert not others & same


async def pages(service: SearchService, limit: int, **fields: object) -> list[SearchResponse]:
    responses = [await search(service, limit=limit, **fields)]
    while responses[-1].next_cursor:
        responses.append(await search(service, limit=limit, cursor=responses[-1].next_cursor, **fields))
    return responses


def star(number: int, **fields: object) -> VectorRecord:
    return vector_record(f"d{number:03}", f"Alpha Centauri {'near ' * (number % 7)}", seed=number, **fields)


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    await index.write([star(number) for number in range(60)], ())
    return index


async def test_pages_are_parts_of_one_ranking(index: EmbeddedIndex) -> None:
    service = search_service(index)
    best = [hit.id for hit in (await search(service, limit=50)).hits]
    responses = await pages(service, 7)
    assert [hit.id for response in responses for hit in response.hits][:50] == best
    assert {len(response.hits) for response in responses[:-1]} == {7}
    assert len({hit.id for response in responses for hit in response.hits}) == 60


async def test_the_limit_may_change_from_page_to_page(index: EmbeddedIndex) -> None:
    service = search_service(index)
    first = await search(service, limit=3)
    rest = await search(service, limit=50, cursor=first.next_cursor)
    assert [hit.id for hit in (*first.hits, *rest.hits)] == [
        hit.id for response in await pages(service, 50) for hit in response.hits
    ][:53]


async def test_a_cursor_of_another_request_is_refused(index: EmbeddedIndex) -> None:
    service = search_service(index)
    first = await search(service, limit=3)
    with pytest.raises(BadRequest, match="cursor: belongs to another request"):
        await search(service, "another query", cursor=first.next_cursor)


async def test_a_write_between_two_pages_is_reported(index: EmbeddedIndex) -> None:
    service = search_service(index)
    first = await search(service, limit=3)
    assert first.degraded == ()
    await index.write([star(99)], ())
    second = await search(service, limit=3, cursor=first.next_cursor)
    reason = "documents were written since "
    assert [(each.source, each.reason[:29]) for each in second.degraded] == [("cursor", reason)]
    third = await search(service, limit=3, cursor=second.next_cursor)
    assert [each.source for each in third.degraded] == ["cursor"]


async def test_a_page_that_is_computed_in_another_way_than_the_first_is_reported(index: EmbeddedIndex) -> None:
    first = await search(search_service(index, vector=FailingSource()), limit=3, mode="hybrid")
    assert [each.source for each in first.degraded] == ["vector"]
    second = await search(search_service(index), limit=3, mode="hybrid", cursor=first.next_cursor)
    assert [each.source for each in second.degraded] == ["cursor"]
    assert "the ranking changed since the first page" in second.degraded[0].reason
    again = await search(
        search_service(index, vector=FailingSource()), limit=3, mode="hybrid", cursor=first.next_cursor
    )
    assert [each.source for each in again.degraded] == ["vector"]
    plain = await search(search_service(index), limit=3)
    other = search_service(index, settings=SETTINGS.changed(fusion="rrf(k=60)"))
    third = await search(other, limit=3, cursor=plain.next_cursor)
    assert [each.source for each in third.degraded] == ["cursor"]


async def test_a_cursor_cannot_request_what_a_request_cannot(index: EmbeddedIndex) -> None:
    service = search_service(index)
    first = await search(service, limit=3, mode="keyword")
    token = msgspec.msgpack.decode(urlsafe_b64decode(first.next_cursor or ""), type=PageToken)
    for changed in ({"depth": 10**6}, {"depth": 301}, {"offset": 2**63}, {"day": -1}):
        forged = urlsafe_b64encode(msgspec.msgpack.encode(msgspec.structs.replace(token, **changed))).decode()
        with pytest.raises(BadRequest, match=f"cursor: {NOT_A_CURSOR}"):
            await search(service, limit=3, mode="keyword", cursor=forged)
    beyond = msgspec.structs.replace(token, offset=999).encode()
    assert (await search(service, limit=3, mode="keyword", cursor=beyond)).hits == ()


async def test_the_next_page_is_encoded_as_the_first_was(index: EmbeddedIndex) -> None:
    """Also by a process with other settings: the static encoder has another vector."""
    static = FixedStaticEncoder(50)
    by_model = search_service(index, static=static)
    by_static = search_service(index, static=static, settings=Settings.of(query_encoder="static"))
    expected = [response.hits for response in await pages(by_model, 20, mode="vector")]
    first = await search(by_model, limit=20, mode="vector")
    second = await search(by_static, limit=20, mode="vector", cursor=first.next_cursor, explain=True)
    assert second.explain
    assert second.explain.encoder == "model"
    assert second.hits == expected[1]
    other = await search(by_static, limit=20, mode="vector", explain=True)
    assert other.explain
    assert other.explain.encoder == "static"
    assert other.hits != first.hits
    after = await search(by_model, limit=20, mode="vector", cursor=other.next_cursor, explain=True)
    assert after.explain
    assert after.explain.encoder == "static"


async def test_ages_are_counted_from_the_day_of_the_first_page(index: EmbeddedIndex) -> None:
    service = search_service(index)
    first = await search(service, limit=3)
    service.now = lambda: 4_000_000_000.0
    second = await search(service, limit=3, cursor=first.next_cursor)
    days = [
        msgspec.msgpack.decode(urlsafe_b64decode(page.next_cursor or ""), type=PageToken).day
        for page in (first, second)
    ]
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
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[object, ...]], limit: int, fields: dict[str, object]
) -> None:
    """All pages together equal one page of everything, for any corpus and request."""

    async def check() -> None:
        index = empty_index(tmp_path_factory.mktemp("paged"))
        records = [
            star(number, parent_id=parent, chunk_index=chunk, importance=importance, collection=collection)
            if seed % 2
            else vector_record(
                f"d{number:03}", f"Alpha Centauri and Proxima{seed}", seed=seed, parent_id=parent, chunk_index=chunk,
                importance=importance, collection=collection,
            )
            for number, (parent, chunk, importance, seed, collection) in enumerate(drawn)
        ]  # fmt: skip
        await index.write(records, ())
        service = search_service(index)
        expected = [hit for response in await pages(service, 50, **fields) for hit in response.hits]
        parts = [hit for response in await pages(service, limit, **fields) for hit in response.hits]
        assert msgspec.json.encode(parts) == msgspec.json.encode(expected)
        assert len({hit.id for hit in parts}) == len(parts)

    anyio.run(check)
