"""What an index over the catalog has to do, to be kept in a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from adapters.embedded.catalog import Catalog

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change:
    """What a version has that the one before had not: document numbers added, and numbers gone."""

    added: Sequence[int]
    removed: Sequence[int]


class Part(Protocol[T]):
    """An index over the catalog: how its files are made, and how they are opened."""

    name: str
    """Its folder."""
    version: str
    """Recipe of its files in a word: part of the index version."""

    def build(self, target: Path, previous: Path | None, catalog: Catalog, change: Change) -> None:
        """Fill the empty folder ``target`` for ``catalog``, from ``previous`` and ``change`` where there is one."""
        ...

    def open(self, folder: Path, catalog: Catalog) -> T:
        """Map what :meth:`build` made."""
        ...

    def count(self, index: T, catalog: Catalog) -> int:
        """How many documents an opened index holds."""
        ...

    def pieces(self, index: T) -> int:
        """In how many places a search has to look, besides the catalog's segments. Asked to build for an empty
        change, a part makes as few as it can."""
        ...
