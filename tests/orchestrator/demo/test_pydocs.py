from __future__ import annotations

from collections import Counter

import pytest

from adapters import Document
from orchestrator.demo.pydocs import documents
from orchestrator.indexing.lines import checked


@pytest.fixture(scope="module")
def made() -> dict[str, Document]:
    found = documents()
    assert len({document.id for document in found}) == len(found)
    return {document.id: document for document in found}


def test_there_is_enough_to_search_in(made: dict[str, Document]) -> None:
    links = sum(len(document.links) for document in made.values())
    mentions = sum(len(document.entities or ()) for document in made.values())
    assert len(made) >= 5_000
    assert links + mentions >= 10_000
    assert links >= 8_000
    assert {"contains", "imports", "inherits", "see_also", "follows"} == set(
        Counter(link.type for document in made.values() for link in document.links)
    )


def test_every_document_is_one_that_the_contract_allows(made: dict[str, Document]) -> None:
    for document in made.values():
        assert checked(document) == document


def test_every_link_leads_somewhere_and_not_to_itself(made: dict[str, Document]) -> None:
    for document in made.values():
        for link in document.links:
            assert link.target in made
            assert link.target != document.id


def test_a_function_is_called_what_people_call_it(made: dict[str, Document]) -> None:
    document = made["asyncio.threads.to_thread"]
    assert document.text.startswith("async def to_thread(func, /, *args, **kwargs)\n\nAsynchronously run")
    assert "asyncio.to_thread" in (document.entities or ())


def test_a_class_links_to_its_bases_and_members(made: dict[str, Document]) -> None:
    links = {(link.type, link.target) for link in made["collections.OrderedDict"].links}
    assert ("contains", "collections.OrderedDict.move_to_end") in links
    assert ("inherits", "builtins.dict") in links
    errors = {(link.type, link.target) for link in made["json.decoder.JSONDecodeError"].links}
    assert ("inherits", "builtins.ValueError") in errors


def test_what_is_written_in_c_is_there(made: dict[str, Document]) -> None:
    assert "number" in made["math.isclose"].text.lower()
    assert "builtins.str.join" in made
    assert "builtins.len" in made


def test_the_language_reference_is_cut_into_chunks_of_one_parent(made: dict[str, Document]) -> None:
    chunks = [document for document in made.values() if document.parent_id == "reference:with"]
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert chunks
    assert all(len(document.text) < 12_000 for document in made.values() if document.collection == "reference")


def test_nothing_private_is_shown(made: dict[str, Document]) -> None:
    private = [
        id_ for id_, d in made.items()
        if d.collection == "python" and any(p.startswith("_") and not p.startswith("__") for p in id_.split("."))
    ]  # fmt: skip
    assert private == []
