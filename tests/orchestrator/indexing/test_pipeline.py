"""Documents to records: entities and vectors. Batches, deletes and refusals are tests of the document service."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from adapters import Document, Link, Scope
from adapters.graph.names import mentioned
from orchestrator.indexing.pipeline import IndexingPipeline, size_bytes
from tests.conftest import SCOPE

pytestmark = pytest.mark.anyio


class LengthEncoder:
    """The length of a text as its vector."""

    identity, dimension = "test", 1
    encodes_texts = True

    def encode_documents(self, documents: Sequence[Document]) -> list[NDArray[np.float32]]:
        return [np.array([[len(each.text)]], np.float32) for each in documents]


@pytest.fixture
def pipeline() -> IndexingPipeline:
    return IndexingPipeline(LengthEncoder(), mentioned)


async def test_entities_are_extracted_only_if_none_are_given(pipeline: IndexingPipeline) -> None:
    documents = [
        Document(id="a", text="We met Ada Lovelace"),
        Document(id="b", text="We met Ada", entities=("E",)),
        Document(id="c", text="We met Ada", entities=()),
    ]
    records = await pipeline.prepare(documents, SCOPE)
    assert [each.record.entities for each in records] == [("Ada Lovelace",), ("E",), ()]


async def test_entities_are_extracted_from_the_title_too(pipeline: IndexingPipeline) -> None:
    (record,) = await pipeline.prepare([Document(id="a", title="On Ada Lovelace", text="a life")], SCOPE)
    assert "Ada Lovelace" in record.record.entities


async def test_each_record_has_the_vector_of_its_own_document_and_the_scope(pipeline: IndexingPipeline) -> None:
    documents = [Document(id=str(n), text="x" * n) for n in (3, 1, 2)]
    records = await pipeline.prepare(documents, Scope("acme", "live"))
    assert [each.record.key for each in records] == [
        ("acme", "live", "3"),
        ("acme", "live", "1"),
        ("acme", "live", "2"),
    ]
    assert [each.vectors.tolist() for each in records] == [[[3.0]], [[1.0]], [[2.0]]]
    assert [each.record.document for each in records] == documents


def test_the_size_of_a_document_grows_with_its_text_and_its_metadata() -> None:
    assert size_bytes(Document(id="a", text="x" * 600)) == 600
    metadata = {"a": "y" * 99, "bcd": [1, 2]}
    assert size_bytes(Document(id="a", text="x", metadata=metadata)) == 1 + 164 + 2 * 19 * (3 + 64)
    assert size_bytes(Document(id="a", text="x", tags=("four", "six"), entities=("abc",))) == 1 + 3 * 64 + 4 + 3 + 3
    assert size_bytes(Document(id="a", text="x", links=(Link("abc", "by"),))) == 1 + 64 + 3 + 2
    assert size_bytes(Document(id="a", text="x", vector=(1.0, 2.0))) == 1 + 2 * 32
