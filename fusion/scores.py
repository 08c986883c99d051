"""Strategies that add up scores, each source's brought to one scale first: a ranking loses how far its hits are apart.

Shaw, Fox: "Combination of Multiple Searches", TREC-2, 1994 (CombSUM); Lee: "Analyses of Multiple Evidence Combination",
SIGIR 1997 (scaling). All are weighted; a ``fusion_score`` of 1.0 is 1 in every source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from fusion.fused import Fused
from fusion.ranking import Ranking
from fusion.total import in_order, total

_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class ScoreSum:
    """The weighted sum of scores that ``scaled`` has brought to [0, 1], one for each place of a ranking."""

    name: str
    scaled: Callable[[Ranking], list[float]]

    def __str__(self) -> str:
        return f"{self.name}()"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Fused:
        """Fuse; ties as in :func:`fusion.total.by_sum`."""
        shares = {
            each.source: [weights.get(each.source, 1.0) * value for value in self.scaled(each)] for each in rankings
        }
        ceiling = sum(weights.get(each.source, 1.0) for each in in_order(rankings))
        return total(rankings, shares, weights, ceiling)


def relative_score() -> ScoreSum:
    """``relative_score()``: the best of a source is 1, its last is 0, the others in between as their scores are."""
    return ScoreSum("relative_score", _relative)


def dbsf() -> ScoreSum:
    """``dbsf()``: a source's mean is 1/2, three standard deviations above it are 1, three below are 0.

    One score far out moves the others less than by :func:`relative_score`. Mazzeschi: "Distribution-Based Score
    Fusion", 2023.
    """
    return ScoreSum("dbsf", _distributed)


def weighted_sum() -> ScoreSum:
    """``weighted_sum()``: the vector's cosine as it is, and of the others the place in the ranking, from 1 down to 1/n.

    Cosines say the same from query to query; BM25 and a walk's probability do not.
    """
    return ScoreSum("weighted_sum", _comparable)


def _relative(ranking: Ranking) -> list[float]:
    if not ranking.scores:
        return []
    low, high = ranking.scores[-1], ranking.scores[0]
    return [(score - low) / (high - low) if high > low else 1.0 for score in ranking.scores]


def _distributed(ranking: Ranking) -> list[float]:
    """What is beyond three deviations is cut off; 1/2 where all are equal."""
    if not ranking.scores:
        return []
    spread = 2 * _DEVIATIONS * pstdev(ranking.scores)
    if spread == 0:
        return [0.5] * len(ranking)
    low = fmean(ranking.scores) - spread / 2
    return [min(max((score - low) / spread, 0.0), 1.0) for score in ranking.scores]


def _comparable(ranking: Ranking) -> list[float]:
    """Cosines under 0 say nothing."""
    if ranking.source == "vector":
        return [min(max(score, 0.0), 1.0) for score in ranking.scores]
    return [1.0 - place / len(ranking) for place in range(len(ranking))]
