"""Text and graph as one: what the text sources find is where the walk over the graph starts, beside the query's names.

Scores are added, not ranks: each divided by the best of its source (CombSUM with the scores scaled by their maximum:
Fox, Shaw: "Combination of Multiple Searches", TREC-2, 1994; Lee: "Analyses of Multiple Evidence Combination", SIGIR
1997), to a power of the source's: a text source's head stands out more than its scores say, a walk's less. The walk
counts the more the more of the query the graph knows by name. docs/decisions/0006-joint-walk-by-default.md measures it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fusion.fused import Fused
from fusion.ranking import DocId, Ranking
from fusion.total import add_up, by_sum, in_order, total

_POWERS = {"vector": 1.5, "keyword": 2.0, "graph": 0.5}
"""What a share of the best score is raised to, by source; 1 for others."""


@dataclass(frozen=True, slots=True)
class JointWalk:
    """``joint_walk(base=4, slope=12, seeds=50)``: where the best of a text source gets 1, the best of the walk gets
    ``base + slope * coverage``; the walk starts from ``seeds`` documents at most.

    :raises ValueError: if ``base`` or ``slope`` is not in 0..100, or ``seeds`` not in 1..1000.
    """

    base: int = 4
    slope: int = 12
    seeds: int = 50

    follows: ClassVar[str] = "graph"

    def __post_init__(self) -> None:
        for name, least, most in (("base", 0, 100), ("slope", 0, 100), ("seeds", 1, 1_000)):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"joint_walk: {name} is {getattr(self, name)}, allowed are {least} to {most}")

    def __str__(self) -> str:
        return f"joint_walk(base={self.base}, slope={self.slope}, seeds={self.seeds})"

    def start(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> tuple[DocId, ...]:
        """The best documents of the text sources together, the best first."""
        ordered = in_order(rankings)
        sums = add_up(ordered, {each.source: self._shares(each, weights) for each in ordered})
        return tuple(by_sum(sums, ordered)[: self.seeds])

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Fused:
        """Fuse; ties as in :func:`fusion.total.by_sum`."""
        shares = {each.source: self._shares(each, weights) for each in rankings}
        ceiling = sum(self._most(each, weights) for each in in_order(rankings))
        return total(rankings, shares, weights, ceiling)

    def _most(self, ranking: Ranking, weights: Mapping[str, float]) -> float:
        """What the first document of a ranking gets."""
        strength = self.base + self.slope * ranking.coverage if ranking.source == self.follows else 1.0
        return weights.get(ranking.source, 1.0) * strength

    def _shares(self, ranking: Ranking, weights: Mapping[str, float]) -> list[float]:
        first = ranking.scores[0] if ranking.scores else 0.0
        if first <= 0:  # a cosine may be negative, and then says nothing
            return [0.0] * len(ranking)
        most, power = self._most(ranking, weights), _POWERS.get(ranking.source, 1.0)
        return [most * (score / first) ** power if score > 0 else 0.0 for score in ranking.scores]
