from __future__ import annotations

from collections import Counter

import pytest

from adapters import Document
from orchestrator.cli.demo.pydocs import python_documents
from orchestrator.indexing.ndjson import checked


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    found = python_documents()
    assert len({document.id for document in found}) == len(found)
    return {document.id: document for document in found}


def test_there_are_thousands_of_documents_and_links(documents: dict[str, Document]) -> None:
    links = sum(len(document.links) for document in documents.values())
    mentions = sum(len(document.entities or ()) for document in documents.values())
    assert len(documents) >= 5_000
    assert links + mentions >= 10_000
    assert links >= 8_000
    assert {"contains", "imports", "inherits", "see_also", "follows"} == set(
        Counter(link.type for document in documents.values() for link in document.links)
    )


def test_every_document_is_valid(documents: dict[str, Document]) -> None:
    for document in documents.values():
        assert checked(document) == document


def test_every_link_leads_to_another_document(documents: dict[str, Document]) -> None:
    for document in documents.values():
        for link in document.links:
            assert link.target in documents
            assert link.target != document.id


def test_a_function_has_its_usual_name_as_an_entity(documents: dict[str, Document]) -> None:
    document = documents["asyncio.threads.to_thread"]
    assert document.text.startswith("async def to_thread(func, /, *args, **kwargs)\n\nAsynchronously run")
    assert "asyncio.to_thread" in (document.entities or ())


def test_a_class_links_to_its_bases_and_members(documents: dict[str, Document]) -> None:
    links = {(link.type, link.target) for link in documents["collections.OrderedDict"].links}
    assert ("contains", "collections.OrderedDict.move_to_end") in links
    assert ("inherits", "builtins.dict") in links
    errors = {(link.type, link.target) for link in documents["json.decoder.JSONDecodeError"].links}
    assert ("inherits", "builtins.ValueError") in errors


def test_modules_written_in_c_are_included(documents: dict[str, Document]) -> None:
    assert "number" in documents["math.isclose"].text.lower()
    assert "builtins.str.join" in documents
    assert "builtins.len" in documents


def test_the_language_reference_is_cut_into_chunks_of_one_parent(documents: dict[str, Document]) -> None:
    chunks = [document for document in documents.values() if document.parent_id == "reference:with"]
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert chunks
    assert all(len(document.text) < 12_000 for document in documents.values() if document.collection == "reference")


def test_private_names_are_not_included(documents: dict[str, Document]) -> None:
    private = [
        id_ for id_, d in documents.items()
        if d.collection == "python" and any(p.startswith("_") and not p.startswith("__") for p in id_.split("."))
    ]  # fmt: skip
    assert private == []
