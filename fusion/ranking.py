"""What a source says, and what fusing several of them gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

DocId: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Hit:
    """One document from one source. ``rank`` starts at 1; ``score`` is the source's own, on its own scale."""

    id: DocId
    rank: int
    score: float


class Facts(Struct, frozen=True, array_like=True):
    """What the stages after fusion need of a document: whose chunk it is, from 0; how old; how important, 0 to 10.

    ``created_at`` is in seconds since the epoch.
    """

    parent: DocId | None = None
    chunk: int | None = None
    created_at: float | None = None
    importance: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """One source's answer, best first, held as columns of equal length.

    Columns and not a list of :class:`Hit`, because a query carries some 150 of them and reads few.

    :param coverage: in [0, 1], of what a query says, the share that the source knows by name; the graph alone says so.
    :param facts: of the documents that have any.
    :param ranks: from 1, where they are not simply 1, 2, 3: see :func:`fusion.merge.merged`.
    :raises ValueError: if the columns differ in length or an id stands twice.
    """

    source: str
    ids: tuple[DocId, ...]
    scores: tuple[float, ...]
    coverage: float = 0.0
    facts: Mapping[DocId, Facts] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.scores):
            raise ValueError(f"ranking {self.source!r} has {len(self.ids)} ids but {len(self.scores)} scores")
        if self.ranks and len(self.ids) != len(self.ranks):
            raise ValueError(f"ranking {self.source!r} has {len(self.ids)} ids but {len(self.ranks)} ranks")
        if len(set(self.ids)) != len(self.ids):
            raise ValueError(f"ranking {self.source!r} names a document twice")

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Hit]:
        for place, (id_, score) in enumerate(zip(self.ids, self.scores, strict=True)):
            yield Hit(id_, self.rank(place), score)

    def rank(self, place: int) -> int:
        """The rank of what stands at a place, counted from 0."""
        return self.ranks[place] if self.ranks else place + 1
