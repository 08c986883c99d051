"""Weighted reciprocal rank fusion.

Cormack, Clarke, Buettcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009. A document's raw score is ``sum over sources of weight / (k + rank)``, rank from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion.columns import Candidates
from fusion.source import Sources
from fusion.sums import Fused, sum_contributions


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

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """Fuse; ties as in :func:`fusion.sums.rank_by_sum`."""
        contributions = {
            source: weights.get(source, 1.0) / (self.k + candidates.ranks[source]) for source in candidates.sources
        }
        ceiling = sum(weights.get(source, 1.0) for source in candidates.sources) / (self.k + 1)
        return sum_contributions(candidates, contributions, weights, sources, ceiling)
