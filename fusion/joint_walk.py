"""Text and graph as one: the walk over the graph starts from what the text sources find, and its scores are added.

Scores are added, not ranks: each is divided by the best of its source (CombSUM with the scores scaled by their maximum:
Fox, Shaw: "Combination of Multiple Searches", TREC-2, 1994; Lee: "Analyses of Multiple Evidence Combination", SIGIR
1997) and raised to the exponent of the source: above 1 for text sources (sharper head), below 1 for the walk (flatter).
The walk counts more, the more of the query consists of entities that the graph knows. A document that no text source
has among its first 100 is found by the walk alone, and its contribution is reduced if these entities are few.
docs/decisions/0006-joint-walk-by-default.md and 0025-trust-by-query.md have the measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusion.columns import Candidates
from fusion.rank_fields import Floats, Ints
from fusion.source import Sources, described
from fusion.sums import Fused, rank_by_sum, raw_sums, sum_contributions

_KNOWN_DEPTH = 100
"""Number of a text source's documents that count as found by it. It is fixed, so deeper searches change no order."""
_FULL_COVERAGE = 0.1
"""The entity coverage from which on a document that only the walk finds counts in full."""


@dataclass(frozen=True, slots=True)
class JointWalk:
    """``joint_walk(base=4, slope=12, seeds=50)``: the best document of a text source contributes 1, the best of the
    walk ``base + slope * entity_coverage``. The walk starts from at most ``seeds`` documents.

    :raises ValueError: if ``base`` or ``slope`` is not in 0..100, or ``seeds`` not in 1..1000.
    """

    base: int = 4
    slope: int = 12
    max_seeds: int = 50

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("base", self.base, 0, 100),
            ("slope", self.slope, 0, 100),
            ("seeds", self.max_seeds, 1, 1_000),
        ):
            if not low <= value <= high:
                raise ValueError(f"joint_walk: {name} is {value}, allowed are {low} to {high}")

    def __str__(self) -> str:
        return f"joint_walk(base={self.base}, slope={self.slope}, seeds={self.max_seeds})"

    def seeds(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Ints:
        """Rows of the best documents of the first stage, best first."""
        sums = raw_sums(candidates, self._all_contributions(candidates, weights, sources))
        if len(sums) <= self.max_seeds:
            return rank_by_sum(sums, candidates, sources)
        smallest = np.partition(sums, len(sums) - self.max_seeds)[len(sums) - self.max_seeds]
        rows = np.flatnonzero(sums >= smallest)
        return rank_by_sum(sums[rows], candidates, sources, rows)[: self.max_seeds]

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """Fuse; ties as in :func:`fusion.sums.rank_by_sum`."""
        contributions = self._all_contributions(candidates, weights, sources)
        ceiling = sum(self._best_contribution(candidates, source, weights, sources) for source in candidates.sources)
        return sum_contributions(candidates, contributions, weights, sources, ceiling)

    def _all_contributions(
        self, candidates: Candidates, weights: Mapping[str, float], sources: Sources
    ) -> dict[str, Floats]:
        return {source: self._contributions(candidates, source, weights, sources) for source in candidates.sources}

    def _best_contribution(
        self, candidates: Candidates, source: str, weights: Mapping[str, float], sources: Sources
    ) -> float:
        """The contribution of the first document of a ranking."""
        is_graph = described(source, sources).is_graph
        strength = self.base + self.slope * candidates.entity_coverage[source] if is_graph else 1.0
        return weights.get(source, 1.0) * strength

    def _contributions(
        self, candidates: Candidates, source: str, weights: Mapping[str, float], sources: Sources
    ) -> Floats:
        scores = candidates.scores[source]
        best = scores[0] if len(scores) else 0.0
        if best <= 0:  # such as a negative cosine
            return np.zeros(len(scores))
        highest = self._best_contribution(candidates, source, weights, sources)
        description = described(source, sources)
        contributions = highest * _power(np.maximum(scores, 0.0) / best, description.exponent)
        coverage = candidates.entity_coverage[source]
        if description.is_graph and coverage < _FULL_COVERAGE:
            contributions[_unknown_to_texts(candidates, source, sources)] *= coverage / _FULL_COVERAGE
        return contributions


def _unknown_to_texts(candidates: Candidates, graph: str, sources: Sources) -> npt.NDArray[np.bool_]:
    """Flags of the documents of a graph's ranking that no text source found; none if no text source found any."""
    known = np.zeros(len(candidates), np.bool_)
    for source in candidates.sources:
        if not described(source, sources).is_graph:
            known[candidates.rows[source][:_KNOWN_DEPTH]] = True
    return ~known[candidates.rows[graph]] if known.any() else np.zeros(len(candidates.rows[graph]), np.bool_)


def _power(values: Floats, exponent: float) -> Floats:
    """``values ** exponent`` for a multiple of one half.

    It uses multiplications and a square root, which are exactly rounded (IEEE 754-2019, section 5.4.1). The results
    of ``numpy.power`` differ in the last digit between processors, and with them the order of documents.
    """
    whole, has_root = divmod(int(2 * exponent), 2)
    result = np.sqrt(values) if has_root else np.ones(len(values))
    for _ in range(whole):
        result *= values
    return result
