"""Boosts: bounded factors on the fusion score, which reorder the candidates and can rank a relevant document lower.

At full strength, with the weights of the profile ``joint``, the product of all factors lies between ``0.7`` (oldest)
and ``1.5 * 1.1 * 1.1`` (most important, most central, most related), so no document overtakes one whose
``fusion_score`` is more than 1.815 / 0.7 = 2.6 times its own. With that of ``rrf`` the factor of centrality may be 2,
not 1.1. Neighbours in a ranking differ by a few per cent: a strong boost costs relevant documents their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from typing import TypeAlias

import numpy as np

from fusion.columns import Candidates
from fusion.rank_fields import Floats, Ints
from fusion.source import Sources
from fusion.sums import Fused, rank_by_sum

_RATE = 0.023
"""By which recency decays, per day."""
MIN_RECENCY_FACTOR, MAX_IMPORTANCE_FACTOR = 0.7, 1.5
"""The lower bound of the factor of recency, and the upper bound of that of importance."""

Factors: TypeAlias = Mapping[str, Floats | None]
"""The factors of each boost, one for each row of the candidates; ``None`` if the boost applies to no candidate."""


@dataclass(frozen=True, slots=True)
class Boosted:
    """Rows by their final score, best first: the fusion score times the product of all factors.

    :param score: parallel to ``rows``.
    """

    rows: Ints
    score: Floats


def centrality(values: Floats, weight: float) -> Floats:
    """``1 + weight * value`` for global centralities in [0, 1]: from 1 to ``1 + weight``.

    :raises ValueError: if a value is not in [0, 1].
    """
    return 1.0 + weight * _checked("centrality", values)


def relationship(values: Floats, weight: float) -> Floats:
    """``1 + weight * value`` for values in [0, 1]: the walk's score of a document divided by its best score.

    :raises ValueError: if a value is not in [0, 1].
    """
    return 1.0 + weight * _checked("relationship", values)


def importance(values: Floats, strength: float = 1.0) -> Floats:
    """``1 + strength * min(value, 10) / 20`` for importances from 0 to 10: from 1 to 1.5 at full strength."""
    return 1.0 + strength * (MAX_IMPORTANCE_FACTOR - 1.0) * np.clip(values, 0.0, 10.0) / 10


def recency(age_days: Floats, strength: float = 1.0, half_life_days: float | None = None) -> Floats:
    """``1 - strength * 0.3 * (1 - exp(-0.023 * age))``: at full strength from 1, over 0.85 after 30 days, to 0.7.

    Negative ages count as 0.

    :param half_life_days: the age with half of the loss, instead of ``ln 2 / 0.023`` days.
    """
    rate = _RATE if half_life_days is None else log(2) / half_life_days
    # The exponentials of the C library: numpy's differ in the last digit between processors.
    exponents = (-rate * np.maximum(age_days, 0.0)).tolist()
    exponentials = np.fromiter(map(exp, exponents), np.float64, len(exponents))
    lowest = 1.0 - strength * (1.0 - MIN_RECENCY_FACTOR)
    return lowest + (1.0 - lowest) * exponentials


def boost(candidates: Candidates, fused: Fused, factors: Factors, sources: Sources) -> Boosted:
    """Multiply and sort again; ties as in :func:`fusion.sums.rank_by_sum`."""
    applied = [column for _, column in sorted(factors.items()) if column is not None]
    if not applied:
        return Boosted(fused.rows, fused.score)
    product = np.ones(len(candidates))
    for column in applied:
        product *= column
    score = np.zeros(len(candidates))
    score[fused.rows] = fused.score * product[fused.rows]
    rows = rank_by_sum(score[fused.rows], candidates, sources, fused.rows)
    return Boosted(rows, score[rows])


def _checked(name: str, values: Floats) -> Floats:
    allowed = (values >= 0.0) & (values <= 1.0)
    if not allowed.all():
        raise ValueError(f"{name} is {values[~allowed][0]}, allowed are 0 to 1")
    return values
