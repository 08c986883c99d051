"""Weighted reciprocal rank fusion.

Cormack, Clarke, Buettcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009. A document's raw score is ``sum over sources of weight / (k + rank)``, rank from 1.

A graph that knows few entities of a query makes the sum of ranks much worse (docs/decisions/0025-trust-by-query.md), so
its weight may depend on the entity coverage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion.columns import Candidates
from fusion.source import Sources, described
from fusion.sums import Fused, sum_contributions


@dataclass(frozen=True, slots=True)
class RRF:
    """``rrf(k=60)``: the larger ``k``, the less the first ranks weigh against the later ones.

    ``rrf(k=60, slope=2)``: the weight of a graph is multiplied by ``slope * entity_coverage``.

    :raises ValueError: if ``k`` is not in 1..10000, or ``slope`` not in 0..100.
    """

    k: int = 60
    slope: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.k <= 10_000:
            raise ValueError(f"rrf: k is {self.k}, allowed are 1 to 10000")
        if self.slope is not None and not 0 <= self.slope <= 100:
            raise ValueError(f"rrf: slope is {self.slope}, allowed are 0 to 100")

    def __str__(self) -> str:
        return f"rrf(k={self.k})" if self.slope is None else f"rrf(k={self.k}, slope={self.slope})"

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """Fuse; ties as in :func:`fusion.sums.rank_by_sum`."""
        weights = {source: self._weight(candidates, source, weights, sources) for source in candidates.sources}
        contributions = {source: weights[source] / (self.k + candidates.ranks[source]) for source in candidates.sources}
        ceiling = sum(weights.values()) / (self.k + 1)
        return sum_contributions(candidates, contributions, weights, sources, ceiling)

    def _weight(self, candidates: Candidates, source: str, weights: Mapping[str, float], sources: Sources) -> float:
        weight = weights.get(source, 1.0)
        if self.slope is None or not described(source, sources).is_graph:
            return weight
        return weight * self.slope * candidates.entity_coverage[source]
