"""A query encoder that is a table: the vector of a query is the normalised sum of its tokens' vectors.

It lives in the documents' space: :mod:`adapters.embed.fit` fits it to a corpus and to the model that encoded it.
Some 50 times faster than the model, and less good on long queries.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from adapters import files
from adapters.errors import Unavailable
from adapters.port import Matrix, Vector

MAX_TOKENS = 64
"""Tokens of a query that are read."""
_WORDS = 16_384
"""Words remembered: some 3 MB."""


class _Header(msgspec.Struct, frozen=True):
    identity: str
    rows: int
    dimension: int
    documents: int
    agreement: float


class QueryTable:
    """Token vectors as 8-bit rows, each with its scale.

    :param documents: how many documents the fit has seen: beyond twice as many, fit again.
    :param agreement: share of the model's ten nearest documents that the table also finds, measured on queries
        that the fit has not seen, in [0, 1].
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
    def quantised(cls, identity: str, table: Matrix, documents: int, agreement: float) -> QueryTable:
        """From full vectors, one row a token."""
        scales = np.maximum(np.abs(table).max(axis=1), 1e-12) / 127
        rows = np.rint(table / scales[:, np.newaxis]).astype(np.int8)
        return cls(identity, rows, scales.astype(np.float32), documents, agreement)

    def encode(self, ids: list[int]) -> Vector | None:
        """The unit vector of these tokens, the first 64; ``None`` if they say nothing at all."""
        taken = ids[:MAX_TOKENS]
        total = self._scales[taken] @ self._rows[taken].astype(np.float32)
        length = float(np.sqrt(total @ total))
        return total / np.float32(length) if length > 1e-6 else None

    def save(self, path: Path) -> None:
        """Write in one step."""
        header = _Header(self.identity, len(self._rows), self._rows.shape[1], self.documents, self.agreement)
        head = msgspec.json.encode(header) + b"\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, head + self._scales.tobytes() + self._rows.tobytes())

    @classmethod
    def load(cls, path: Path) -> QueryTable | None:
        """Map what :meth:`save` wrote; ``None`` if there is none.

        :raises Unavailable: if the file is damaged.
        """
        try:
            with path.open("rb") as file:
                head = file.readline()
        except FileNotFoundError:
            return None
        try:
            header = msgspec.json.decode(head, type=_Header)
            # As a plain array: indexing a numpy.memmap costs 20 µs more, for the same memory.
            content = np.asarray(np.memmap(path, np.uint8, mode="r", offset=len(head)))
            scales, rows = content[: 4 * header.rows], content[4 * header.rows :]
            return cls(
                header.identity,
                rows.view(np.int8).reshape(header.rows, header.dimension),
                np.frombuffer(scales.tobytes(), np.float32),
                header.documents,
                header.agreement,
            )
        except (msgspec.DecodeError, ValueError) as error:
            raise Unavailable(f"{path} is damaged, remove it: {error}") from error


class WordPieces:
    """Word pieces of queries. A word's are remembered: the tokenizer takes longer than all that follows it.

    Word by word is the same as at once, for this family of tokenizers never joins what white space parts.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._of = lru_cache(maxsize=_WORDS)(self._split)

    def ids(self, text: str) -> list[int]:
        """The pieces of a query's first 1,024 characters, without marks."""
        return [id_ for word in text[: 16 * MAX_TOKENS].split() for id_ in self._of(word)]

    def _split(self, word: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(word, add_special_tokens=False).ids)
