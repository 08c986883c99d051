"""Strategies that add up scores, each source's brought to one scale first: a ranking loses how far its hits are apart.

Shaw, Fox: "Combination of Multiple Searches", TREC-2, 1994 (CombSUM); Lee: "Analyses of Multiple Evidence Combination",
SIGIR 1997 (scaling). All are weighted; a ``fusion_score`` of 1.0 is 1 in every source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from fusion.ranking import FusedHit, Ranking
from fusion.total import in_order, total

_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class RelativeScore:
    """``relative_score()``: the best of a source is 1, its last is 0, the others in between as their scores are."""

    def __str__(self) -> str:
        return "relative_score()"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float], limit: int) -> list[FusedHit]:
        """At most ``limit`` hits, best first; ties as in :func:`fusion.total.total`."""
        return _add(self.scaled, rankings, weights, limit)

    def scaled(self, ranking: Ranking) -> list[float]:
        """Min-max."""
        if not ranking.scores:
            return []
        low, high = ranking.scores[-1], ranking.scores[0]
        return [(score - low) / (high - low) if high > low else 1.0 for score in ranking.scores]


@dataclass(frozen=True, slots=True)
class DistributionBased:
    """``dbsf()``: a source's mean is 1/2, three standard deviations above it are 1, three below are 0.

    One score far out moves the others less than by :class:`RelativeScore`. Mazzeschi: "Distribution-Based Score
    Fusion", 2023.
    """

    def __str__(self) -> str:
        return "dbsf()"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float], limit: int) -> list[FusedHit]:
        """At most ``limit`` hits, best first; ties as in :func:`fusion.total.total`."""
        return _add(self.scaled, rankings, weights, limit)

    def scaled(self, ranking: Ranking) -> list[float]:
        """By mean and deviation, what is beyond three of them cut off; 1/2 where all are equal."""
        if not ranking.scores:
            return []
        spread = 2 * _DEVIATIONS * pstdev(ranking.scores)
        if spread == 0:
            return [0.5] * len(ranking)
        low = fmean(ranking.scores) - spread / 2
        return [min(max((score - low) / spread, 0.0), 1.0) for score in ranking.scores]


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """``weighted_sum()``: the vector's cosine as it is, and of the others the place in the ranking, from 1 down to 1/n.

    Cosines say the same from query to query; BM25 and a walk's probability do not.
    """

    def __str__(self) -> str:
        return "weighted_sum()"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float], limit: int) -> list[FusedHit]:
        """At most ``limit`` hits, best first; ties as in :func:`fusion.total.total`."""
        return _add(self.scaled, rankings, weights, limit)

    def scaled(self, ranking: Ranking) -> list[float]:
        """Cosines under 0 say nothing."""
        if ranking.source == "vector":
            return [min(max(score, 0.0), 1.0) for score in ranking.scores]
        return [1.0 - place / len(ranking) for place in range(len(ranking))]


def _add(
    scaled: Callable[[Ranking], list[float]], rankings: Sequence[Ranking], weights: Mapping[str, float], limit: int
) -> list[FusedHit]:
    shares = {each.source: [weights.get(each.source, 1.0) * value for value in scaled(each)] for each in rankings}
    ceiling = sum(weights.get(each.source, 1.0) for each in in_order(rankings))
    return total(rankings, shares, weights, ceiling, limit)
