"""Strategies that add scores, which are scaled for each source first. Ranks alone lose the distances between hits.

Shaw, Fox: "Combination of Multiple Searches", TREC-2, 1994 (CombSUM); Lee: "Analyses of Multiple Evidence Combination",
SIGIR 1997 (scaling). All are weighted; a ``fusion_score`` of 1.0 is 1 in every source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np

from fusion.columns import Candidates
from fusion.source import Source, Sources, described
from fusion.sums import Fused, sum_contributions

_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class ScoreSum:
    """The weighted sum of scores that ``scale`` maps to [0, 1].

    :param scale: maps the scores of a ranking, best first, to as many values in [0, 1].
    """

    name: str
    scale: Callable[[Sequence[float], Source], list[float]]

    def __str__(self) -> str:
        return f"{self.name}()"

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """Fuse; ties as in :func:`fusion.sums.rank_by_sum`."""
        contributions = {}
        for source in candidates.sources:
            scores = candidates.scores[source].tolist()
            scaled = np.array(self.scale(scores, described(source, sources)), np.float64)
            contributions[source] = weights.get(source, 1.0) * scaled
        ceiling = sum(weights.get(source, 1.0) for source in candidates.sources)
        return sum_contributions(candidates, contributions, weights, sources, ceiling)


def relative_score() -> ScoreSum:
    """``relative_score()``: the best of a source is 1, its last is 0, the others lie in between as their scores do."""
    return ScoreSum("relative_score", _relative)


def dbsf() -> ScoreSum:
    """``dbsf()``: a source's mean is 1/2, three standard deviations above it are 1, three below are 0.

    One outlier moves the others less than in :func:`relative_score`. Mazzeschi: "Distribution-Based Score Fusion",
    2023.
    """
    return ScoreSum("dbsf", _distributed)


def weighted_sum() -> ScoreSum:
    """``weighted_sum()``: cosines unchanged, and for other sources the position in the ranking, from 1 to 1/n.

    Cosines are comparable between queries; BM25 scores and a walk's probabilities are not.
    """
    return ScoreSum("weighted_sum", _comparable)


def _relative(scores: Sequence[float], source: Source) -> list[float]:
    del source
    if not scores:
        return []
    low, high = scores[-1], scores[0]
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _distributed(scores: Sequence[float], source: Source) -> list[float]:
    """Values beyond three deviations are cut off; 1/2 where all are equal."""
    del source
    if not scores:
        return []
    spread = 2 * _DEVIATIONS * pstdev(scores)
    if spread == 0:
        return [0.5] * len(scores)
    low = fmean(scores) - spread / 2
    return [min(max((score - low) / spread, 0.0), 1.0) for score in scores]


def _comparable(scores: Sequence[float], source: Source) -> list[float]:
    """Cosines, 0 for negative ones; or values by position."""
    if source.comparable_scores:
        return [min(max(score, 0.0), 1.0) for score in scores]
    return [1.0 - index / len(scores) for index in range(len(scores))]
