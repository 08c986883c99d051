"""Documents that are split into chunks as they are written."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import Document
from orchestrator.indexing.ndjson import InvalidLine
from orchestrator.service.documents import DocumentService
from tests.conftest import SCOPE
from tests.orchestrator.service.document_helpers import admin, put, stored
from tests.orchestrator.service.test_deletes import ids

pytestmark = pytest.mark.anyio


put_split = partial(put, chunks="split")


def words(count: int) -> str:
    return " ".join(f"w{number}" for number in range(count))


async def test_a_long_document_is_stored_with_its_chunks(service: DocumentService) -> None:
    response = await put_split(service, Document(id="a", text=words(7)), Document(id="b", text="short"))
    assert [(each.line, each.id, each.status) for each in response.lines] == [
        (1, "a", "indexed"),
        (1, "a#:0", "indexed"),
        (1, "a#:1", "indexed"),
        (1, "a#:2", "indexed"),
        (2, "b", "indexed"),
    ]
    assert (await stored(service, "a", "a#:0", "a#:2")) == {"a": words(7), "a#:0": "w0 w1 w2", "a#:2": "w6"}


async def test_a_document_that_is_written_again_leaves_no_stale_chunk(service: DocumentService) -> None:
    await put_split(service, Document(id="a", text=words(12)), Document(id="b", text=words(5)))
    response = await put_split(service, Document(id="a", text=words(5)))
    assert response.deleted == 2
    assert await ids(service) == {"a", "a#:0", "a#:1", "b", "b#:0", "b#:1"}
    await put_split(service, Document(id="a", text="short"))
    assert await ids(service) == {"a", "b", "b#:0", "b#:1"}


async def test_chunks_of_another_collection_stay(service: DocumentService) -> None:
    await put_split(service, Document(id="a", text=words(7), collection="x"))
    await put_split(service, Document(id="a", text="short", collection="y"))
    assert await ids(service, "x") == {"a", "a#:0", "a#:1", "a#:2"}


async def test_a_line_that_is_a_chunk_stays_as_it_is(service: DocumentService) -> None:
    await put(service, Document(id="p", text="x"), Document(id="p1", text="y", parent_id="p"))
    await put_split(service, Document(id="p2", text=words(9), parent_id="p"))
    assert await ids(service) == {"p", "p1", "p2"}


async def test_invalid_lines_are_reported_with_the_others(service: DocumentService) -> None:
    response = await put_split(service, Document(id="a", text=words(4)), more=[InvalidLine(2, "no")])
    assert [(each.line, each.status) for each in response.lines] == [
        (1, "indexed"),
        (1, "indexed"),
        (1, "indexed"),
        (2, "rejected"),
    ]


async def test_a_document_above_the_clearance_is_refused_with_its_chunks(service: DocumentService) -> None:
    secret = Document(id="a", text=words(7), sensitivity="restricted")
    response = await put_split(service, secret, by=admin("normal"))
    assert {each.status for each in response.lines} == {"rejected"}
    assert await stored(service, "a", "a#:0", scope=SCOPE) == {}


@pytest.mark.parametrize("between", [0, 300])
async def test_of_a_document_that_is_in_a_body_twice_the_last_one_counts(
    service: DocumentService, between: int
) -> None:
    others = [Document(id=f"o{number}", text="o") for number in range(between)]
    await put_split(service, Document(id="a", text=words(12)), *others, Document(id="a", text=words(5)))
    assert await ids(service) == {"a", "a#:0", "a#:1", *(each.id for each in others)}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(min_value=1, max_value=14)), min_size=1, max_size=8))
@settings(max_examples=20)
async def test_what_is_stored_depends_on_the_last_text_alone(
    service: DocumentService, edits: list[tuple[str, int]]
) -> None:
    for id_, count in edits:
        await put_split(service, Document(id=id_, text=words(count)))
    last = dict(edits)
    expected = set(last)
    for id_, count in last.items():
        expected |= {f"{id_}#:{number}" for number in range(-(-count // 3))} if count > 3 else set()
    found = await ids(service)
    assert {each for each in found if each[0] in last} == expected


async def test_a_document_whose_chunks_are_too_large_together_is_refused_and_the_others_are_written(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.indexing.chunks.MAX_BATCH_BYTES", 300)
    large = Document(id="a", text=words(7), tags=("x" * 100,))
    response = await put_split(service, large, Document(id="b", text=words(7)))
    assert [(each.line, each.status) for each in response.lines] == [(1, "rejected"), *[(2, "indexed")] * 4]
    assert "which have" in response.lines[0].error
    assert await ids(service) == {"b", "b#:0", "b#:1", "b#:2"}
