"""Bounded factors on a fused score: they may sway an order, never turn it upside down.

Each factor stays within its bounds, so with the default weights a product of all of them goes from ``0.7`` (as old as
can be) to ``1.5 * 1.1 * 1.1`` (most important, most central, most related): no document overtakes one whose
``fusion_score`` is more than 1.815 / 0.7 = 2.6 times its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

from fusion.fused import Fused
from fusion.ranking import DocId
from fusion.total import by_sum

OLDEST, MOST_IMPORTANT = 0.7, 1.5
"""The bounds of recency, downwards, and of importance, upwards."""

Factors = Mapping[str, Mapping[DocId, float]]
"""By boost, by document; a document that a boost says nothing of has the factor 1."""


@dataclass(frozen=True, slots=True)
class Boosted:
    """Documents by their final score, best first: the fused score times the product of its factors.

    :param products: of the documents that any boost says something of.
    """

    ids: tuple[DocId, ...]
    factors: Factors
    products: Mapping[DocId, float]

    def of(self, id_: DocId) -> dict[str, float]:
        """The factor of each boost for one document."""
        return {name: by_document.get(id_, 1.0) for name, by_document in self.factors.items()}

    def score(self, id_: DocId, fusion_score: float) -> float:
        """The final score of one document."""
        return fusion_score * self.products.get(id_, 1.0)


def centrality(value: float, weight: float) -> float:
    """``1 + weight * value`` for a global centrality in [0, 1]: from 1 to ``1 + weight``.

    :raises ValueError: if the value is not in [0, 1].
    """
    return 1.0 + weight * _share("centrality", value)


def relationship(value: float, weight: float) -> float:
    """``1 + weight * value``, the value being how near the walk came to a document, in shares of the nearest: [0, 1].

    :raises ValueError: if the value is not in [0, 1].
    """
    return 1.0 + weight * _share("relationship", value)


def importance(value: float) -> float:
    """``1 + min(value, 10) / 20`` for an importance from 0 to 10: from 1 to 1.5."""
    return 1.0 + (MOST_IMPORTANT - 1.0) * min(max(value, 0.0), 10.0) / 10


def recency(age_days: float) -> float:
    """``0.7 + 0.3 * exp(-0.023 * age)``: from 1 today to 0.7; half of the way after 30 days. The future is today."""
    return OLDEST + (1 - OLDEST) * exp(-0.023 * max(age_days, 0.0))


def boost(fused: Fused, factors: Factors) -> Boosted:
    """Multiply and sort again; ties as in :func:`fusion.total.by_sum`."""
    products: dict[DocId, float] = {}
    for name in sorted(factors):
        for id_, factor in factors[name].items():
            products[id_] = products.get(id_, 1.0) * factor
    if not products:
        return Boosted(fused.ids, factors, products)
    scores = {id_: score * products.get(id_, 1.0) for id_, score in zip(fused.ids, fused.scores, strict=True)}
    return Boosted(tuple(by_sum(scores, fused.rankings)), factors, products)


def _share(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is {value}, allowed are 0 to 1")
    return value
