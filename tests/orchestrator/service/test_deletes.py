"""Listing, replacing the chunks of a document, and deleting: a document, what matches a filter, a collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from adapters import SENSITIVITIES, Document, Scope, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.model.filter import And, Eq, Filter, In, Not
from orchestrator.auth.principal import Forbidden, Principal
from orchestrator.indexing import metadata_keys
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine
from orchestrator.planning.errors import BadRequest
from orchestrator.service import document_lookup as lookup_module
from orchestrator.service import documents as documents_module
from orchestrator.service.documents import DocumentService
from tests.conftest import SCOPE
from tests.orchestrator.service.document_helpers import WRITER, admin, lines, put

pytestmark = pytest.mark.anyio


def chunk(parent: str, number: int, **fields: object) -> Document:
    return Document(id=f"{parent}-{number}", text="x", parent_id=parent, chunk_index=number, **fields)  # type: ignore[arg-type]


async def ids(service: DocumentService, *collections: str) -> set[str]:
    """The ids of the documents of some collections, by default of all that there are."""
    names = collections or [each.name for each in (await service.collections(WRITER)).collections]
    found = await service.documents.find(In("collection", tuple(names)), 1_000)
    return {record.document.id for record in found}


async def test_a_document_is_deleted_with_its_chunks(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"), *(chunk("a", n) for n in range(5)), chunk("b", 0))
    response = await service.delete("a", WRITER)
    assert (response.deleted, response.chunks) == (True, 5)
    assert await ids(service) == {"b-0"}


async def test_of_two_deletes_in_two_processes_one_deletes(
    service: DocumentService, open_index: Callable[[], EmbeddedIndex]
) -> None:
    await put(service, Document(id="a", text="x"), Document(id="b", text="y"))
    before = open_index()  # has not read the deletes of the other one yet
    other = replace(service, documents=before, lines=replace(service.lines, writer=before))
    assert (await service.delete("a", WRITER)).deleted is True
    assert (await other.delete("a", WRITER)).deleted is False
    assert (await service.delete_many(Eq("id", "b"), WRITER)).deleted == 1
    assert (await other.delete_many(Eq("id", "b"), WRITER)).deleted == 0


async def test_its_chunks_can_be_kept(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"), chunk("a", 0))
    assert (await service.delete("a", WRITER, with_chunks=False)).chunks == 0
    assert await ids(service) == {"a-0"}


async def test_chunks_in_another_collection_go_too_unless_they_have_a_parent_of_their_own(
    service: DocumentService,
) -> None:
    await put(service, Document(id="a", text="x", collection="books"), chunk("a", 0, collection="passages"))
    await put(service, Document(id="b", text="x", collection="books"), chunk("b", 0, collection="passages"))
    await put(service, Document(id="b", text="x", collection="passages"))
    assert (await service.delete("a", WRITER)).chunks == 1
    assert (await service.delete("b", WRITER, "books")).chunks == 0
    assert await ids(service) == {"b", "b-0"}


async def test_what_the_principal_may_not_see_stays(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"), chunk("a", 0), chunk("a", 1, sensitivity="restricted"))
    assert (await service.delete("a", admin("normal"))).chunks == 1
    response = await service.delete_many(Eq("parent_id", "a"), admin("normal"))
    assert (response.matched, response.deleted) == (0, 0)
    assert await ids(service) == {"a-1"}


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (Eq("tags", "old"), {"2"}),
        (Not(Eq("tags", "old")), {"0", "1"}),
        (In("id", ("0", "2")), {"1"}),
        (And(()), set()),
        (Eq("created_at", "2026-01-31"), {"0", "1", "2"}),
    ],
)
async def test_the_documents_that_match_a_filter_are_deleted(
    service: DocumentService, condition: Filter, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_module, "_MAX_DELETED", 1)
    await put(service, *(Document(id=str(n), text="x", tags=("old",) if n < 2 else ()) for n in range(3)))
    dry = await service.delete_many(condition, WRITER, dry_run=True)
    assert (dry.matched, dry.deleted) == (3 - len(left), 0)
    assert await ids(service) == {"0", "1", "2"}
    response = await service.delete_many(condition, WRITER)
    assert (response.matched, response.deleted) == (3 - len(left), 3 - len(left))
    assert response.generation >= dry.generation
    assert await ids(service) == left


async def listed(service: DocumentService, principal: Principal, condition: Filter | None = None) -> list[str]:
    return [document.id async for document in service.all(principal, condition)]


async def test_documents_are_listed_as_far_as_the_principal_may_see_them(service: DocumentService) -> None:
    await put(service, *(Document(id=str(n), text="x", tags=("old",) if n % 2 else ()) for n in range(9)))
    await put(service, Document(id="secret", text="x", sensitivity="restricted"))
    assert await listed(service, WRITER) == [*"012345678", "secret"]
    assert await listed(service, admin("normal"), Eq("tags", " old ")) == [*"1357"]
    assert await listed(service, admin("restricted", Scope("another", "default"))) == []
    page = await service.page(WRITER, limit=4, start="2")
    assert ([record.document.id for record in page.records], page.next) == ([*"3456"], "6")


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_a_page_has_one_to_a_thousand_documents(service: DocumentService, limit: int) -> None:
    with pytest.raises(BadRequest, match=f"limit: {limit}, allowed are 1 to 1000"):
        await service.page(WRITER, limit=limit)


replace_chunks = partial(put, chunks="given")


async def test_the_chunks_of_a_document_are_replaced_in_one_write(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"), *(chunk("a", n) for n in range(5)), chunk("b", 0))
    await put(service, chunk("a", 9, collection="notes"), chunk("a", 8, sensitivity="restricted"))
    before = service.generation()
    outcome = await replace_chunks(service, chunk("a", 1), chunk("a", 7), by=admin("normal"))
    assert (outcome.indexed, outcome.deleted, outcome.generation) == (2, 4, before + 1)
    assert await ids(service) == {"a", "a-1", "a-7", "a-8", "a-9", "b-0"}


async def test_a_document_without_chunks_in_the_request_loses_them(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"), chunk("a", 0), chunk("b", 0))
    outcome = await replace_chunks(service, Document(id="a", text="y"))
    assert (outcome.indexed, outcome.deleted) == (1, 1)
    assert await ids(service) == {"a", "b-0"}


async def test_chunks_are_not_replaced_by_half(service: DocumentService, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(service, chunk("a", 0), chunk("a", 1), chunk("a", 2))

    async def read() -> list[ParsedLine]:
        return [*lines(chunk("a", 1)), InvalidLine(2, "oops")]

    with pytest.raises(BadRequest, match="line 2 is invalid, so nothing is written: oops"):
        await service.put(read, WRITER, "given")
    monkeypatch.setattr(documents_module, "MAX_WRITE_DOCUMENTS", 1)
    with pytest.raises(BadRequest, match="more than the 1 lines allowed: send several requests"):
        await replace_chunks(service, chunk("a", 1), chunk("a", 5))
    with pytest.raises(Unavailable):
        await replace_chunks(replace(service, is_current=lambda: False), Document(id="a", text="x"))
    monkeypatch.setattr(documents_module, "MAX_BATCH_BYTES", 1)
    with pytest.raises(BadRequest, match="1 bytes and more, allowed are fewer than 1: send several requests"):
        await replace_chunks(service, chunk("a", 1))
    assert await ids(service) == {"a-0", "a-1", "a-2"}


async def test_a_line_that_may_not_be_written_keeps_its_old_version(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(service, chunk("a", 0, metadata={"k": 1}), chunk("a", 1))
    monkeypatch.setattr(metadata_keys, "MAX_METADATA_KEYS", 1)
    outcome = await replace_chunks(service, chunk("a", 0, metadata={"new": 1}), chunk("a", 2))
    assert (outcome.indexed, outcome.rejected, outcome.deleted) == (1, 1, 1)
    assert await ids(service) == {"a-0", "a-2"}


async def test_deleting_needs_the_role_and_an_allowed_filter(service: DocumentService) -> None:
    reader = Principal("reader", SCOPE, SENSITIVITIES[-1], "reader")
    with pytest.raises(Forbidden):
        await service.delete_many(And(()), reader)
    with pytest.raises(BadRequest, match="unknown field 'tenant'"):
        await service.delete_many(Eq("tenant", "x"), WRITER)


async def test_a_document_with_very_many_chunks_is_deleted_by_a_filter(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_module, "_MAX_CHUNKS", 2)
    await put(service, Document(id="a", text="x"), chunk("a", 0), chunk("a", 1))
    with pytest.raises(BadRequest, match="'a' has 2 chunks or more: delete them by a filter"):
        await service.delete("a", WRITER)
    assert await ids(service) == {"a", "a-0", "a-1"}
