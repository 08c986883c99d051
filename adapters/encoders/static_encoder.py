"""A static query encoder: the vector of a query is the normalised sum of the vectors of its tokens.

It encodes into the space of the documents: :mod:`adapters.encoders.static_fit` fits it to a corpus and to the model
that encoded the corpus. It is some 20 times faster than the model, and less accurate on long queries.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from adapters.model.errors import Damaged
from adapters.ports.encoders import MAX_QUERY_CHARS, MAX_QUERY_TOKENS, Matrix, Vector
from adapters.storage import checked_file

_MAX_CACHED_WORDS = 16_384
"""Maximum number of words whose token ids are cached: about 3 MB."""
_MAX_HEADER_BYTES = 4_096


class _Header(msgspec.Struct, frozen=True):
    """The first line of the content, as JSON. The scales (float32) and the rows (int8) follow it."""

    identity: str
    rows: int
    dimension: int
    documents: int
    agreement: float


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
        path.parent.mkdir(parents=True, exist_ok=True)
        content = msgspec.json.encode(header) + b"\n" + self._scales.tobytes() + self._rows.tobytes()
        checked_file.write(path, content)

    @classmethod
    def load(cls, path: Path) -> StaticQueryEncoder | None:
        """Map a file that :meth:`save` wrote; ``None`` if there is no file.

        :raises Damaged: on a checksum mismatch.
        """
        try:
            content = checked_file.mapped(path)
        except FileNotFoundError:
            return None
        except Damaged as error:
            raise Damaged("the static encoder is damaged", error.detail) from error
        first_line, _, _ = content[:_MAX_HEADER_BYTES].tobytes().partition(b"\n")
        header = msgspec.json.decode(first_line, type=_Header)
        numbers = content[len(first_line) + 1 :]
        scales, rows = numbers[: 4 * header.rows], numbers[4 * header.rows :]
        return cls(
            header.identity,
            rows.view(np.int8).reshape(header.rows, header.dimension),
            np.frombuffer(scales.tobytes(), np.float32),
            header.documents,
            header.agreement,
        )


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
