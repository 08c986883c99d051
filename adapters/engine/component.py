"""The protocol of the indexes that an embedded index consists of."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from adapters.engine.segment_set import SegmentSet

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delta:
    """The difference between two commits: document numbers that were added, and those that were removed.

    :param scopes: tenant and environment of the removed documents.
    """

    added: Sequence[int]
    removed: Sequence[int]
    scopes: Set[tuple[str, str]] = frozenset()


class IndexComponent(Protocol[T]):
    """An index over the segments: how its files are built, and how they are opened."""

    name: str
    """Its folder."""
    format: str
    """Name of the format of its files, in one word; a part of the build id."""

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Write the files for ``segments`` to the empty folder ``target``, from ``previous`` and ``delta`` if given."""
        ...

    def open(self, folder: Path, segments: SegmentSet, before: T | None) -> T:
        """Map what :meth:`build` wrote. What is in ``before``, of an earlier commit, too, need not be mapped again."""
        ...

    def count(self, index: T, segments: SegmentSet) -> int:
        """Number of documents in an opened index."""
        ...

    def fragment_count(self, index: T) -> int:
        """Number of structures that a search has to visit, besides the segments.

        A build with an empty delta makes as few as possible.
        """
        ...
