"""The fallback when a fusion strategy fails: the sources one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion.fused import Fused
from fusion.ranking import Ranking
from fusion.total import in_order

_PRIORITY = ("keyword", "vector", "graph")
"""Keyword first: of the three it is the one whose failures a reader can see and understand."""


@dataclass(frozen=True, slots=True)
class Concatenate:
    """``concatenate()``: all of the first source, then what is new in the second, and so on.

    ``fusion_score`` falls in equal steps from 1.0, so that the order is the only thing that it says.
    """

    def __str__(self) -> str:
        return "concatenate()"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Fused:
        """Concatenate and deduplicate; ``weights`` are shown but change nothing."""
        ids = tuple(dict.fromkeys(id_ for ranking in sorted(rankings, key=_priority) for id_ in ranking.ids))
        scores = tuple([(len(ids) - place) / len(ids) for place in range(len(ids))])
        shares = {each.source: [0.0] * len(each) for each in rankings}
        return Fused(ids, scores, scores, tuple(in_order(rankings)), shares, weights)


def _priority(ranking: Ranking) -> tuple[int, str]:
    place = _PRIORITY.index(ranking.source) if ranking.source in _PRIORITY else len(_PRIORITY)
    return place, ranking.source
