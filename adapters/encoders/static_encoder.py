"""A static query encoder: the vector of a query is the normalised sum of the vectors of its tokens.

It encodes into the space of the documents: :mod:`adapters.encoders.static_fit` fits it to a corpus and to the model
that encoded the corpus. It is some 50 times faster than the model, and less accurate on long queries.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from adapters.model.errors import Damaged
from adapters.ports.encoders import MAX_QUERY_CHARS, MAX_QUERY_TOKENS, Matrix, Vector
from adapters.storage import files

_MAX_CACHED_WORDS = 16_384
"""Some 3 MB."""


class _Header(msgspec.Struct, frozen=True):
    """The first line of the file, as JSON. The scales (float32) and the rows (int8) follow it."""

    identity: str
    rows: int
    dimension: int
    documents: int
    agreement: float
    checksum: str = ""


class StaticQueryEncoder:
    """Token vectors, quantised to 8 bits with one scale for each row.

    :param identity: identity of the model, and recipe of the fit.
    :param rows: shape (tokens, dimension).
    :param scales: shape (tokens,).
    :param documents: number of documents that it was fitted to. With more than twice as many, fit again.
    :param agreement: the fraction of the model's ten nearest documents that are also among this encoder's ten, measured
        on queries that the fit did not use; in [0, 1].
    """

    def __init__(
        self,
        identity: str,
        rows: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
        documents: int,
        agreement: float,
    ) -> None:
        self.identity = identity
        self.documents = documents
        self.agreement = agreement
        self._rows = rows
        self._scales = scales

    @classmethod
    def quantised(cls, identity: str, vectors: Matrix, documents: int, agreement: float) -> StaticQueryEncoder:
        """Quantise token vectors of shape (tokens, dimension)."""
        scales = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / 127
        rows = np.rint(vectors / scales[:, np.newaxis]).astype(np.int8)
        return cls(identity, rows, scales.astype(np.float32), documents, agreement)

    def encode(self, ids: list[int]) -> Vector | None:
        """The unit vector of a query; ``None`` if it has no token, or their vectors add up to zero."""
        used = ids[:MAX_QUERY_TOKENS]
        total = self._scales[used] @ self._rows[used].astype(np.float32)
        length = float(np.sqrt(total @ total))
        return total / np.float32(length) if length > 1e-6 else None

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        header = _Header(self.identity, len(self._rows), self._rows.shape[1], self.documents, self.agreement)
        content = self._scales.tobytes() + self._rows.tobytes()
        first_line = msgspec.json.encode(_with_checksum(header, content)) + b"\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, first_line + content)

    @classmethod
    def load(cls, path: Path) -> StaticQueryEncoder | None:
        """Map a file that :meth:`save` wrote; ``None`` if there is no file.

        :raises Damaged: if the file is not what was written.
        """
        try:
            with path.open("rb") as file:
                first_line = file.readline()
        except FileNotFoundError:
            return None
        try:
            header = msgspec.json.decode(first_line, type=_Header)
            # As a plain array: indexing a numpy.memmap costs 20 µs more, for the same memory.
            content = np.asarray(np.memmap(path, np.uint8, mode="r", offset=len(first_line)))
        except (msgspec.DecodeError, ValueError) as error:
            raise _damaged(path) from error
        if first_line != msgspec.json.encode(_with_checksum(header, content.data)) + b"\n":
            raise _damaged(path)
        scales, rows = content[: 4 * header.rows], content[4 * header.rows :]
        return cls(
            header.identity,
            rows.view(np.int8).reshape(header.rows, header.dimension),
            np.frombuffer(scales.tobytes(), np.float32),
            header.documents,
            header.agreement,
        )


def _damaged(path: Path) -> Damaged:
    return Damaged("the static encoder is damaged: remove its file", f"{path} is not what was written")


def _with_checksum(header: _Header, content: bytes | memoryview) -> _Header:
    """The header with the checksum of itself without one, and of the content."""
    hashed = blake2b(msgspec.json.encode(msgspec.structs.replace(header, checksum="")), digest_size=16)
    hashed.update(content)
    return msgspec.structs.replace(header, checksum=hashed.hexdigest())


class WordPieces:
    """Token ids of queries. Those of a word are cached, because the tokenizer is slower than the rest of the encoding.

    Splitting word by word gives the same tokens as splitting the whole text: tokenizers of this family never join what
    white space separates.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids_of_word = lru_cache(maxsize=_MAX_CACHED_WORDS)(self._split)

    def ids(self, text: str) -> list[int]:
        """The token ids of as many characters of a query as encoders read, without [CLS] and [SEP]."""
        return [id_ for word in text[:MAX_QUERY_CHARS].split() for id_ in self._ids_of_word(word)]

    def _split(self, word: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(word, add_special_tokens=False).ids)
