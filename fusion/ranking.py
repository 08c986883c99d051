"""What a source says, and what fusing several of them gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

DocId: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Hit:
    """One document from one source. ``rank`` starts at 1; ``score`` is the source's own, on its own scale."""

    id: DocId
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """One source's answer, best first, held as two columns of equal length.

    Columns and not a list of :class:`Hit`, because a query carries some 150 of them and reads few.

    :param coverage: in [0, 1], of what a query says, the share that the source knows by name; the graph alone says so.
    :raises ValueError: if the columns differ in length or an id stands twice.
    """

    source: str
    ids: tuple[DocId, ...]
    scores: tuple[float, ...]
    coverage: float = 0.0

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.scores):
            raise ValueError(f"ranking {self.source!r} has {len(self.ids)} ids but {len(self.scores)} scores")
        if len(set(self.ids)) != len(self.ids):
            raise ValueError(f"ranking {self.source!r} names a document twice")

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Hit]:
        for rank, (id_, score) in enumerate(zip(self.ids, self.scores, strict=True), start=1):
            yield Hit(id_, rank, score)


class Contribution(Struct, frozen=True):
    """What one source gave to one hit. ``rank`` starts at 1; ``contribution`` is in units of the raw fusion sum."""

    rank: int
    score: float
    weight: float
    contribution: float


class FusedHit(Struct, frozen=True):
    """A document with its place among all sources.

    ``raw`` is the strategy's own sum; ``fusion_score`` is that in [0, 1], 1.0 being first in every source.
    ``sources`` has a key for every source that answered, ``None`` where it did not return the document.
    """

    id: DocId
    raw: float
    fusion_score: float
    sources: Mapping[str, Contribution | None]
