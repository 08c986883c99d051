"""The fallback when a fusion strategy fails: the sources one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion.ranking import Contribution, DocId, FusedHit, Ranking

_PRIORITY = ("keyword", "vector", "graph")
"""Keyword first: of the three it is the one whose failures a reader can see and understand."""


@dataclass(frozen=True, slots=True)
class Concatenate:
    """``concatenate()``: all of the first source, then what is new in the second, and so on.

    ``fusion_score`` falls in equal steps from 1.0, so that the order is the only thing that it says.
    """

    def __str__(self) -> str:
        return "concatenate()"

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float], limit: int) -> list[FusedHit]:
        """Concatenate and deduplicate into at most ``limit`` hits; ``weights`` are shown but change nothing."""
        ordered = sorted(rankings, key=_priority)
        sources: dict[DocId, dict[str, Contribution | None]] = {}
        for ranking in ordered:
            for hit in ranking:
                gave = sources.setdefault(hit.id, dict.fromkeys(r.source for r in ordered))
                gave[ranking.source] = Contribution(hit.rank, hit.score, weights.get(ranking.source, 1.0), 0.0)
        total = len(sources)
        return [
            FusedHit(id_, raw=(total - place) / total, fusion_score=(total - place) / total, sources=gave)
            for place, (id_, gave) in enumerate(list(sources.items())[:limit])
        ]


def _priority(ranking: Ranking) -> tuple[int, str]:
    place = _PRIORITY.index(ranking.source) if ranking.source in _PRIORITY else len(_PRIORITY)
    return place, ranking.source
