"""What is encoded of a document, and the vectors that documents bring."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Document
from adapters.encoders.address import encoder
from adapters.encoders.documents import DocumentVectors
from adapters.model.document import PARTS, EncodedPart
from adapters.model.errors import Rejected
from adapters.model.vectors import packed, unpacked
from adapters.ports.encoders import EncodedText


class Lengths:
    """The length of a text as its vector."""

    identity, dimension, encodes_texts = "lengths", 2, True

    def encode_texts(self, texts: Sequence[EncodedText]) -> list[np.ndarray]:
        return [np.full((1, self.dimension), len(each.text), np.float32) for each in texts]


@pytest.mark.parametrize(
    ("fields", "encoded"),
    [
        ({"text": "x"}, ("x", "")),
        ({"text": "x", "title": "T"}, ("x", "T")),
        ({"text": "x" * 2_000, "title": "T", "chunk_count": 2}, ("x" * 1_000, "T")),
        (
            {"text": "x", "title": "T", "local_summary": "sum", "semantic_boosters": ("b", "c")},
            ("x", "T\nsum\nb\nc"),
        ),
        ({"text": "x", "title": "t" * 2_000, "local_summary": "s" * 2_000}, ("x", f"{'t' * 2_000}\n{'s' * 1_000}")),
        ({"text": "x", "title": "T", "heading_path": ("T", "A", "B")}, ("x", "T\nA\nB")),
        ({"text": "x", "summary": "of the whole", "keywords": ("k",), "tags": ("t",)}, ("x", "")),
    ],
)
def test_what_is_encoded_of_a_document(fields: dict[str, Any], encoded: tuple[str, str]) -> None:
    assert DocumentVectors(Lengths()).text_of(Document(id="a", **fields)) == EncodedText(*encoded)


@pytest.mark.parametrize(
    ("parts", "encoded", "identity"),
    [
        (PARTS, ("T\nA\nsum\nb", "before", "after"), "lengths~thsbn"),
        (("boosters", "title"), ("T\nb",), "lengths~tb"),
        (("headings",), ("A",), "lengths~h"),
        (("summary",), ("sum",), "lengths~s"),
        (("neighbors",), ("", "before", "after"), "lengths~n"),
        ((), (), "lengths~"),
    ],
)
def test_the_parts_that_are_chosen_are_encoded_and_identify_the_vectors(
    parts: Collection[EncodedPart], encoded: tuple[str, ...], identity: str
) -> None:
    vectors = DocumentVectors(Lengths(), parts)
    document = Document(
        id="a",
        text="x",
        title="T",
        heading_path=("A",),
        local_summary="sum",
        semantic_boosters=("b",),
        text_before="before",
        text_after="after",
    )
    assert vectors.text_of(document) == EncodedText("x", *encoded)
    assert vectors.identity == identity


def test_a_vector_that_a_document_brings_is_used_instead_of_its_text() -> None:
    documents = [
        Document(id="1", text="one"),
        Document(id="2", text="two", vector=(3.0, 4.0)),
        Document(id="3", text="three"),
    ]
    vectors = [each.tolist() for each in DocumentVectors(Lengths()).encode_documents(documents)]
    assert vectors == [[[3, 3]], [np.array([0.6, 0.8], np.float32).tolist()], [[5, 5]]]


def test_nothing_encodes_texts_if_vectors_are_given() -> None:
    none = encoder("none://2")
    documents = DocumentVectors(none)
    assert (documents.identity, documents.dimension, documents.encodes_texts) == ("none-2", 2, False)
    own = Document(id="1", text="one", vector=(0.0, -2.0))
    assert documents.encode_documents([own])[0].tolist() == [[0, -1]]
    with pytest.raises(Rejected, match="a text of 3 characters has no vector, and none://2 encodes no text"):
        documents.encode_documents([own, Document(id="2", text="two")])
    with pytest.raises(Rejected):
        none.encode("query")


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20).filter(any))
def test_numbers_of_single_precision_are_stored_as_they_are(numbers: list[float]) -> None:
    read = unpacked(packed(numbers))
    assert np.array_equal(np.float32(read), np.float32(numbers))
    assert packed(read) == packed(numbers)


def test_a_stored_number_is_read_as_it_was_written() -> None:
    assert unpacked(packed([0.1, -2.5, 0.12345678, 1e-30])) == (0.1, -2.5, 0.12345678, 1e-30)


@pytest.mark.parametrize("numbers", [[1e39], [1e-60], [0.0], [float("nan"), 1.0], []])
def test_what_cannot_be_stored_is_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="must contain finite numbers, one of them not 0"):
        packed(numbers)
