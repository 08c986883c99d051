"""The fitted table of a data folder, followed as it is fitted again."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from adapters import files
from adapters.embed.table import QueryTable, WordPieces
from adapters.port import Vector

LEAST_AGREEMENT = 0.4
"""A table that finds fewer of the model's ten nearest documents than this is not used."""


class TableFile:
    """A :class:`QueryTable` at ``path``, where there is one.

    :param space: identity of the document encoder; a table of another space is not used.
    """

    def __init__(self, path: Path, tokenizer: Tokenizer, space: str) -> None:
        self.path = path
        self._pieces = WordPieces(tokenizer)
        self._space = space
        self._stamp: tuple[int, int] | None = None
        self.table: QueryTable | None = None
        self.refresh()

    def refresh(self) -> None:
        """Open the file if it is another one than the last time."""
        stamp = files.stamp(self.path)
        if stamp is None:
            self.table, self._stamp = None, None
        elif stamp != self._stamp:
            loaded = QueryTable.load(self.path)
            good = loaded and loaded.identity.startswith(self._space) and loaded.agreement >= LEAST_AGREEMENT
            self.table, self._stamp = (loaded if good else None), stamp

    def encode(self, text: str) -> Vector | None:
        """The query's vector, in well under a millisecond; ``None`` if there is no table, or nothing to go by."""
        if self.table is None:
            return None
        return self.table.encode(self._pieces.ids(text))
