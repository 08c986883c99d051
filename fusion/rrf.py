"""Weighted reciprocal rank fusion.

Cormack, Clarke, Buettcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009. A document's raw score is ``sum over sources of weight / (k + rank)``, rank from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion.fused import Fused
from fusion.ranking import Ranking
from fusion.total import in_order, total


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

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Fused:
        """Fuse; ties as in :func:`fusion.total.by_sum`."""
        shares = {each.source: self._shares(each, weights) for each in rankings}
        ceiling = sum(weights.get(each.source, 1.0) for each in in_order(rankings)) / (self.k + 1)
        return total(rankings, shares, weights, ceiling)

    def _shares(self, ranking: Ranking, weights: Mapping[str, float]) -> list[float]:
        weight = weights.get(ranking.source, 1.0)
        return [weight / (self.k + rank) for rank in ranking.ranks or range(1, len(ranking) + 1)]
