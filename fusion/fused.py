"""What fusing several rankings gives: all documents, best first, each with what every source gave to it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import neg
from typing import TypeAlias

from msgspec import Struct

from fusion.ranking import DocId, Ranking

Shares: TypeAlias = Mapping[str, Sequence[float]]
"""By source, what each place of its ranking gives to the document that stands there."""


class Contribution(Struct, frozen=True):
    """What one source gave to one hit. ``rank`` starts at 1; ``contribution`` is in units of the raw fusion sum."""

    rank: int
    score: float
    weight: float
    contribution: float


class FusedHit(Struct, frozen=True):
    """A document with its place among all sources.

    ``raw`` is the strategy's own sum; ``fusion_score`` is that in [0, 1], 1.0 being the most of every source.
    ``sources`` has a key for every source that answered, ``None`` where it did not return the document.
    """

    id: DocId
    raw: float
    fusion_score: float
    sources: Mapping[str, Contribution | None]


@dataclass(frozen=True, slots=True)
class Fused:
    """One ranking of several, best first, as columns of equal length; ``scores`` are in [0, 1] and never rise.

    What each source gave is made out by :meth:`hits`, for the few documents that somebody asks about.

    :param rankings: what was fused, by source.
    :param weights: of the sources, 1 where one has none.
    """

    ids: tuple[DocId, ...]
    raw: tuple[float, ...]
    scores: tuple[float, ...]
    rankings: tuple[Ranking, ...]
    shares: Shares
    weights: Mapping[str, float]

    def above(self, least: float) -> Fused:
        """Those with a score of ``least`` and more."""
        count = bisect_right(self.scores, -least, key=neg)
        return (
            self
            if count == len(self.ids)
            else replace(self, ids=self.ids[:count], raw=self.raw[:count], scores=self.scores[:count])
        )

    def hits(self, ids: Iterable[DocId] | None = None) -> list[FusedHit]:
        """These documents, by default all, in the order asked.

        :raises KeyError: for a document that is not here.
        """
        places = {id_: place for place, id_ in enumerate(self.ids)}
        by_source = [(each, {id_: place for place, id_ in enumerate(each.ids)}) for each in self.rankings]
        return [
            FusedHit(
                id=id_,
                raw=self.raw[places[id_]],
                fusion_score=self.scores[places[id_]],
                sources={each.source: self._contribution(each, at.get(id_)) for each, at in by_source},
            )
            for id_ in (self.ids if ids is None else ids)
        ]

    def _contribution(self, ranking: Ranking, place: int | None) -> Contribution | None:
        if place is None:
            return None
        weight = self.weights.get(ranking.source, 1.0)
        return Contribution(ranking.rank(place), ranking.scores[place], weight, self.shares[ranking.source][place])
