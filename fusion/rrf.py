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
        shares = {
            ranking.source: [weights.get(ranking.source, 1.0) / (self.k + rank) for rank in range(1, len(ranking) + 1)]
            for ranking in ordered
        }
        raw: dict[DocId, float] = {}
        for ranking in ordered:
            for id_, share in zip(ranking.ids, shares[ranking.source], strict=True):
                raw[id_] = raw.get(id_, 0.0) + share

        places = {ranking.source: {id_: index for index, id_ in enumerate(ranking.ids)} for ranking in ordered}
        best = _first(raw, limit, places.get("keyword", {}))
        ceiling = sum(weights.get(ranking.source, 1.0) for ranking in ordered) / (self.k + 1)
        return [
            FusedHit(
                id=id_,
                raw=raw[id_],
                # Rounding may carry a document that is first everywhere one ulp past the ceiling.
                fusion_score=min(raw[id_] / ceiling, 1.0) if ceiling > 0 else 0.0,
                sources={
                    ranking.source: _contribution(
                        places[ranking.source].get(id_),
                        ranking,
                        weights.get(ranking.source, 1.0),
                        shares[ranking.source],
                    )
                    for ranking in ordered
                },
            )
            for id_ in best
        ]


def _first(raw: Mapping[DocId, float], limit: int, keyword: Mapping[DocId, int]) -> list[DocId]:
    """The ``limit`` best ids. Only the part that is kept, and what ties with its end, pays for the tie rule."""
    by_score = sorted(raw, key=raw.__getitem__, reverse=True)
    if not 0 < limit < len(by_score):
        end = max(0, min(limit, len(by_score)))
    else:
        end = limit
        while end < len(by_score) and raw[by_score[end]] == raw[by_score[limit - 1]]:
            end += 1
    by_score = by_score[:end]
    by_score.sort(key=lambda id_: (-raw[id_], keyword.get(id_, _UNRANKED), id_))
    return by_score[:limit]


def _contribution(index: int | None, ranking: Ranking, weight: float, shares: Sequence[float]) -> Contribution | None:
    if index is None:
        return None
    return Contribution(index + 1, ranking.scores[index], weight, shares[index])
