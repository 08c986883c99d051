"""Bounded factors on a fused score: they may sway an order, never turn it upside down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from msgspec import Struct

from fusion.ranking import DocId, FusedHit


class BoostedHit(Struct, frozen=True):
    """A fused hit with its final ``score``: ``fusion_score`` times the product of ``factors``."""

    fused: FusedHit
    factors: Mapping[str, float]
    score: float


def centrality(value: float, weight: float) -> float:
    """``1 + weight * value`` for a centrality in [0, 1]: from 1 to ``1 + weight``.

    :raises ValueError: if the value is not in [0, 1].
    """
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"centrality is {value}, allowed are 0 to 1")
    return 1.0 + weight * value


def boost(hits: Sequence[FusedHit], factors: Mapping[str, Mapping[DocId, float]]) -> list[BoostedHit]:
    """Multiply and sort again; what ends up equal stays in the order in which it came.

    :param factors: by boost, by document; a document that a boost says nothing of has the factor 1.
    """
    boosted = []
    for hit in hits:
        own = {name: by_document[hit.id] for name, by_document in factors.items() if hit.id in by_document}
        boosted.append(BoostedHit(hit, own, hit.fusion_score * prod(own.values())))
    return sorted(boosted, key=lambda hit: -hit.score)
