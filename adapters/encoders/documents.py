"""The vectors of documents: which of their texts are encoded, or the vectors that they bring."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from adapters.model.document import PARTS, Document, EncodedPart
from adapters.model.vectors import unit
from adapters.ports.encoders import PARTS_MARK, EncodedText, Matrix, TextEncoder

_BEGINNING_CHARS, _MAX_ABOUT_CHARS = 1_000, 1_000


class DocumentVectors:
    """See :class:`adapters.ports.DocumentEncoder`.

    :param parts: what is encoded beside the text.
    """

    def __init__(self, encoder: TextEncoder, parts: Collection[EncodedPart] = PARTS) -> None:
        self._encoder = encoder
        self._parts = frozenset(parts)

    @property
    def identity(self) -> str:
        """The encoder, and the first letter of each part."""
        if not self.encodes_texts:
            return self._encoder.identity
        return f"{self._encoder.identity}{PARTS_MARK}{''.join(part[0] for part in PARTS if part in self._parts)}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._encoder.dimension

    @property
    def encodes_texts(self) -> bool:
        """As of the encoder."""
        return self._encoder.encodes_texts

    def encode_documents(self, documents: Sequence[Document]) -> list[Matrix]:
        """For each document, in order, one unit row at least: that which it brings, or those of its text.

        :raises Rejected: if a document brings none, and texts are not encoded.
        """
        own = [None if each.vector is None else unit(each.vector)[np.newaxis] for each in documents]
        texts = [self.text_of(each) for each in documents if each.vector is None]
        encoded = iter(self._encoder.encode_texts(texts) if texts else ())
        return [next(encoded) if vector is None else vector for vector in own]

    def text_of(self, document: Document) -> EncodedText:
        """The text of a document that is encoded, and what is encoded with it.

        Of a document with chunks only the beginning is encoded: the chunks have the rest.
        """
        text = document.text[:_BEGINNING_CHARS] if document.chunk_count else document.text
        headings = (each for each in document.heading_path if each != document.title)
        about = [*self._if("summary", [document.local_summary]), *self._if("boosters", document.semantic_boosters)]
        beginning = (
            *self._if("title", [document.title]),
            *self._if("headings", headings),
            "\n".join(filter(None, about))[:_MAX_ABOUT_CHARS],
        )
        neighbors = self._if("neighbors", (document.text_before, document.text_after))
        return EncodedText(text, "\n".join(filter(None, beginning)), *neighbors)

    def _if(self, part: EncodedPart, texts: Iterable[str]) -> Iterable[str]:
        """The texts of a part that is encoded."""
        return texts if part in self._parts else ()
