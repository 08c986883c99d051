"""Weighted reciprocal rank fusion.

Cormack, Clarke, Buettcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009. A document's raw score is ``sum over sources of weight / (k + rank)``, rank from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion.ranking import Contribution, DocId, FusedHit, Ranking

_UNRANKED = 1 << 62
"""Sorts after every rank that a source can give."""


@dataclass(frozen=True, slots=True)
class RRF:
    """``rrf(k=60)``: the larger ``k``, the less the first ranks weigh against the later ones.

    :raises ValueError: if ``k`` is not in 1..10000.
    """

    k: int = 60

    def __post_init__(self) -> None:
        if not 1 <= self.k <= 10_000:
            raise ValueError(f"rrf: k is {self.k}, allowed are 1 to 10000")

    def __str__(self) -> str:
        return f"rrf(k={self.k})"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float], limit: int) -> list[FusedHit]:
        """Fuse into at most ``limit`` hits, best first.

        Ties are broken by the keyword rank, up, then by the id, up; the order of ``rankings`` never matters.
        """
        # Floating-point addition is not associative: one order of summing makes the bytes the same every time.
        ordered = sorted(rankings, key=lambda ranking: ranking.source)
        given = {ranking.source: self._contributions(ranking, weights) for ranking in ordered}
        raw: dict[DocId, float] = {}
        for of_source in given.values():
            for id_, share in of_source.items():
                raw[id_] = raw.get(id_, 0.0) + share.contribution
        ceiling = sum(weights.get(ranking.source, 1.0) for ranking in ordered) / (self.k + 1)
        return [
            FusedHit(
                id=id_,
                raw=raw[id_],
                # Rounding may carry a document that is first everywhere one ulp past the ceiling.
                fusion_score=min(raw[id_] / ceiling, 1.0) if ceiling > 0 else 0.0,
                sources={source: of_source.get(id_) for source, of_source in given.items()},
            )
            for id_ in _first(raw, limit, given.get("keyword", {}))
        ]

    def _contributions(self, ranking: Ranking, weights: Mapping[str, float]) -> dict[DocId, Contribution]:
        weight = weights.get(ranking.source, 1.0)
        return {
            id_: Contribution(rank, score, weight, weight / (self.k + rank))
            for rank, (id_, score) in enumerate(zip(ranking.ids, ranking.scores, strict=True), start=1)
        }


def _first(raw: Mapping[DocId, float], limit: int, keyword: Mapping[DocId, Contribution]) -> list[DocId]:
    """The ``limit`` best ids. Only the part that is kept, and what ties with its end, pays for the tie rule."""
    by_score = sorted(raw, key=raw.__getitem__, reverse=True)
    if not 0 < limit < len(by_score):
        end = max(0, min(limit, len(by_score)))
    else:
        end = limit
        while end < len(by_score) and raw[by_score[end]] == raw[by_score[limit - 1]]:
            end += 1
    by_score = by_score[:end]
    by_score.sort(key=lambda id_: (-raw[id_], keyword[id_].rank if id_ in keyword else _UNRANKED, id_))
    return by_score[:limit]
