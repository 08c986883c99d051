"""A document is identified by its collection and its id: the same id in two collections is two documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Document, Link
from orchestrator.service.documents import DocumentService
from orchestrator.service.errors import Ambiguous, NotFound
from tests.conftest import vector_record
from tests.orchestrator.service.document_helpers import WRITER, admin, put
from tests.orchestrator.services import empty_index, search, search_service

pytestmark = pytest.mark.anyio


async def test_the_same_id_in_another_collection_replaces_nothing(service: DocumentService) -> None:
    for collection in ("films", "books"):
        outcome = await put(service, Document(id="1", text=f"one of the {collection}", collection=collection))
        assert (outcome.indexed, outcome.rejected) == (1, 0)
    for collection in ("films", "books"):
        assert (await service.get("1", WRITER, collection)).text == f"one of the {collection}"
    counts = (await service.collections(WRITER)).collections
    assert {each.name: each.documents for each in counts} == {"books": 1, "films": 1}


async def test_an_id_of_several_collections_needs_the_collection(service: DocumentService) -> None:
    await put(service, Document(id="1", text="x", collection="films"), Document(id="1", text="y", collection="books"))
    for read in (service.get, service.delete):
        with pytest.raises(
            Ambiguous, match="several documents have the id '1': name a collection, one of books, films"
        ):
            await read("1", WRITER)
    assert (await service.delete("1", WRITER, "films")).deleted
    with pytest.raises(NotFound, match="no document '1' in 'films'"):
        await service.get("1", WRITER, "films")
    assert (await service.get("1", WRITER)).text == "y"
    assert (await service.delete("1", WRITER)).deleted


async def test_a_hidden_document_is_not_one_of_several(service: DocumentService) -> None:
    secret = Document(id="1", text="x", collection="plans", sensitivity="restricted")
    await put(service, secret, Document(id="1", text="y", collection="books"))
    assert (await service.get("1", admin("normal"))).text == "y"
    assert not (await service.delete("1", admin("normal"), "plans")).deleted
    outcome = await put(service, Document(id="1", text="z", collection="plans"), by=admin("normal"))
    assert outcome.rejected == 1


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
async def test_both_are_hits(tmp_path: Path, mode: str) -> None:
    index = empty_index(tmp_path)
    await index.write([vector_record("1", "alpha", seed=1, collection=name) for name in ("films", "books")], ())
    response = await search(search_service(index), "alpha", mode=mode)
    assert {(hit.id, hit.collection) for hit in response.hits} == {("1", "films"), ("1", "books")}


async def test_a_link_leads_to_its_own_collection_then_to_the_only_other_one(tmp_path: Path) -> None:
    index = empty_index(tmp_path)
    await index.write(
        [
            vector_record("from", "Alpha Centauri", seed=1, collection="films", links=(Link("to", "see"),)),
            vector_record("to", "a film", seed=2, collection="films"),
            vector_record("to", "a book", seed=3, collection="books"),
            vector_record("other", "Proxima Centauri", seed=4, collection="films", links=(Link("only", "see"),)),
            vector_record("only", "a paper", seed=5, collection="papers"),
            vector_record("named", "Tau Ceti", seed=6, collection="films", links=(Link("to", "see", 1.0, "books"),)),
        ],
        (),
    )
    service = search_service(index)

    async def linked(query: str) -> set[tuple[str, str]]:
        hits = (await search(service, query, mode="graph")).hits
        return {(hit.id, hit.collection) for hit in hits if hit.id in {"to", "only"}}

    assert await linked("Alpha Centauri") == {("to", "films")}
    assert await linked("Proxima Centauri") == {("only", "papers")}
    assert await linked("Tau Ceti") == {("to", "books")}


async def test_chunks_of_two_documents_with_the_same_id_are_two_results(tmp_path: Path) -> None:
    index = empty_index(tmp_path)
    chunks = [
        vector_record(f"{name}-{n}", "alpha", seed=n, collection=name, parent_id="1", chunk_index=n)
        for name in ("films", "books")
        for n in range(3)
    ]
    await index.write(chunks, ())
    response = await search(search_service(index), "alpha", mode="keyword", collapse="parent")
    assert sorted(hit.collection for hit in response.hits) == ["books", "films"]
    assert {hit.parent_id for hit in response.hits} == {"1"}
