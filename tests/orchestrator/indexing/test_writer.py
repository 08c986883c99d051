from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from adapters import Document
from adapters.embedded import Library
from adapters.graph.names import mentioned
from orchestrator.indexing import writer as writer_
from orchestrator.indexing.writer import IndexWriter
from tests.conftest import SCOPE, unit

pytestmark = pytest.mark.anyio


class Encoder:
    """Real vectors are the embedder's tests' business; here they must only be there."""

    identity, dimension = "test", 16

    def encode_documents(self, texts):
        import numpy as np

        return np.stack([unit(len(text)) for text in texts])


@pytest.fixture
def writing(open_library: Callable[[], Library]) -> tuple[IndexWriter, Library]:
    library = open_library()
    return IndexWriter(library, Encoder(), mentioned), library


async def test_entities_are_taken_from_the_text_only_where_none_are_given(writing) -> None:
    writer, library = writing
    documents = [Document(id="a", text="We met Ada Lovelace"), Document(id="b", text="We met Ada", entities=("E",))]
    await writer.index(documents, SCOPE)
    records = await library.fetch(SCOPE, ["a", "b"])
    assert records["a"].entities == ("Ada Lovelace",)
    assert records["b"].entities == ("E",)


async def test_what_is_held_at_once_does_not_grow_with_the_input(writing, monkeypatch) -> None:
    writer, library = writing
    monkeypatch.setattr(writer_, "_ENCODED_AT_ONCE", 4)
    monkeypatch.setattr(writer_, "_WRITTEN_AT_ONCE", 8)
    ahead = 0
    seen: list[int] = []

    def endless() -> Iterator[Document]:
        nonlocal ahead
        for number in range(30):
            ahead += 1
            assert ahead - library.current().catalog.count <= 8
            yield Document(id=str(number), text="x")

    progress = await writer.index(endless(), SCOPE, seen.append)
    assert (progress.indexed, progress.generation) == (30, 4)
    assert seen == [4, 4, 4, 4, 4, 4, 4, 2]


async def test_indexing_again_changes_nothing_but_the_generation(writing) -> None:
    writer, library = writing
    documents = [Document(id=str(n), text=f"text {n}") for n in range(5)]
    await writer.index(documents, SCOPE)
    await writer.index(documents, SCOPE)
    assert library.current().catalog.count == 5


async def test_nothing_to_index_writes_nothing(writing) -> None:
    writer, library = writing
    assert (await writer.index([], SCOPE)).indexed == 0
    assert library.generation() == 0


async def test_deleting(writing) -> None:
    writer, library = writing
    await writer.index([Document(id="a", text="x")], SCOPE)
    assert (await writer.delete(SCOPE, ["a"])).generation == 2
    assert library.current().catalog.count == 0


async def test_large_documents_are_written_in_smaller_batches(writing, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.indexing import writer as module

    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1_000)
    writer, library = writing
    done = await writer.index((Document(id=str(n), text="x" * 600) for n in range(9)), SCOPE)
    assert (done.indexed, library.current().catalog.count) == (9, 9)
    assert done.generation == 5
