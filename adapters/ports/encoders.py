"""Text to vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from adapters.model.document import Document

Vector: TypeAlias = npt.NDArray[np.float32]
"""Shape (dimension,), of unit length."""

Matrix: TypeAlias = npt.NDArray[np.float32]
"""Shape (count, dimension), rows of unit length."""

TokenEnds: TypeAlias = Callable[[str], Sequence[int]]
"""Where each token of a text ends, in characters from its beginning. Blocks, for 1 µs for each token."""

PARTS_MARK = "~"
"""In the identity of a :class:`DocumentEncoder`, between that of the encoder and what is encoded."""
MAX_QUERY_TOKENS = 128
"""Maximum number of tokens of a query, [CLS] and [SEP] not included. Later ones are ignored, because time grows with
them. With 64 or 96, data sets with long questions lose .005 and .011 nDCG@10."""
MAX_QUERY_CHARS = 16 * MAX_QUERY_TOKENS
"""Maximum number of characters of a query that are split into tokens: enough for :data:`MAX_QUERY_TOKENS`."""


def encoder_of(build_id: str) -> str:
    """The identity of the encoder with whose vectors an index was built: queries need the same one."""
    return build_id.partition("+")[0].partition(PARTS_MARK)[0]


class EncodedText(NamedTuple):
    """A text to encode, and what is encoded with it.

    :param beginning: what each window of the text begins with.
    :param before: the end of the text before it; as much as fits into one window with the text.
    :param after: the beginning of the text after it, likewise.
    """

    text: str
    beginning: str = ""
    before: str = ""
    after: str = ""


class TextSplitter(Protocol):
    """Splits texts into passages of at most a number of tokens, and of characters. Blocks."""

    def fits(self, text: str) -> bool:
        """Whether a text is one passage."""
        ...

    def split(self, text: str, is_markdown: bool = True) -> Sequence[tuple[int, int]]:
        """Where each passage of a text begins and ends, in characters.

        Passages may overlap, and leave out nothing but white space around them, and passages without letters and
        digits, such as the lines of a table.
        """
        ...

    def around(self, text: str, start: int, end: int) -> tuple[str, str]:
        """A few tokens of a text before and after one of its passages, without white space around them."""
        ...


class Encoder(Protocol):
    """What all encoders have."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def encodes_texts(self) -> bool:
        """Whether it can: else documents and queries bring their vectors."""
        ...


class QueryEncoder(Encoder, Protocol):
    """Encodes queries into the space of the documents, in a few milliseconds, on the event loop."""

    def encode(self, text: str) -> Vector:
        """A unit vector. Reads :data:`MAX_QUERY_TOKENS` tokens at most."""
        ...


class TextEncoder(Encoder, Protocol):
    """Encodes texts of documents. Blocks: call it off the event loop."""

    @property
    def identity(self) -> str:
        """Model, weights and recipe in one line."""
        ...

    def encode_texts(self, texts: Sequence[EncodedText]) -> list[Matrix]:
        """For each text, in order, one unit row for each of its windows, one at least."""
        ...


class DocumentEncoder(Encoder, Protocol):
    """Encodes documents. Blocks: call it off the event loop."""

    @property
    def identity(self) -> str:
        """Encoder and texts in one line; contained in the build id."""
        ...

    def encode_documents(self, documents: Sequence[Document]) -> list[Matrix]:
        """For each document, in order, one unit row at least."""
        ...
