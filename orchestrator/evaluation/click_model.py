"""Relevance from clicks: the position-based click model, by expectation maximisation.

Users click a document if they look at its position and find it attractive; the first depends on the position only, the
second on the query and the document only (Chuklin, Markov, de Rijke, "Click Models for Web Search", 2015, sections 3.3
and 4.2). A document that is shown low and never clicked may be good: it was hardly looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Pair: TypeAlias = tuple[str, str]
"""A query and a document."""

MAX_POSITION = 50
"""Lower positions are looked at as often as this one."""
_MAX_ROUNDS = 500
_TOLERANCE = 1e-7
"""The largest change of a probability at which the estimate has converged."""
_PRIOR_CLICKS, _PRIOR_VIEWS = 0.5, 1.0
"""Added to what was seen of each document and each position, so that one click is no certainty."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A document that was shown for a query, once.

    :param position: from 1.
    """

    pair: Pair
    position: int
    is_clicked: bool


@dataclass(frozen=True, slots=True)
class ClickModel:
    """What the clicks say.

    :param attractiveness: of each pair, in [0, 1]: the probability of a click by a user who looks at it.
    :param looks: how often each pair was looked at, as estimated.
    :param examination: of each position from 1 on, in [0, 1], relative to the one that is looked at most; 0 where
        nothing was shown.
    """

    attractiveness: dict[Pair, float]
    looks: dict[Pair, float]
    examination: list[float]


def fitted(shown: Iterable[Shown]) -> ClickModel:
    """The model of what was shown. The same input gives the same model, in any order."""
    counts: dict[tuple[Pair, int], list[int]] = {}
    for each in shown:
        views_and_clicks = counts.setdefault((each.pair, min(each.position, MAX_POSITION)), [0, 0])
        views_and_clicks[0] += 1
        views_and_clicks[1] += each.is_clicked
    if not counts:
        return ClickModel({}, {}, [])
    keys = sorted(counts)
    pairs = sorted({pair for pair, _ in keys})
    number = {pair: index for index, pair in enumerate(pairs)}
    of_pair = np.array([number[pair] for pair, _ in keys])
    of_position = np.array([position - 1 for _, position in keys])
    views, clicks = np.array([counts[key] for key in keys], float).T
    views_of_pair, views_of_position = np.bincount(of_pair, views), np.bincount(of_position, views)
    attractive, examined = np.full(len(pairs), 0.5), 1 / np.arange(1.0, len(views_of_position) + 1)
    for _ in range(_MAX_ROUNDS):
        both = attractive[of_pair], examined[of_position]
        skipped = np.maximum(1 - both[0] * both[1], 1e-12)
        unclicked = views - clicks
        # Of those that did not click, how many found it attractive, and how many looked at it.
        was_attractive = clicks + unclicked * both[0] * (1 - both[1]) / skipped
        was_examined = clicks + unclicked * both[1] * (1 - both[0]) / skipped
        new = (np.bincount(of_pair, was_attractive) + _PRIOR_CLICKS) / (views_of_pair + _PRIOR_VIEWS)
        looked = (np.bincount(of_position, was_examined, len(examined)) + _PRIOR_CLICKS) / (
            views_of_position + _PRIOR_VIEWS
        )
        change = max(np.abs(new - attractive).max(), np.abs(looked - examined).max())
        attractive, examined = new, looked
        if change < _TOLERANCE:
            break
    # Only the products are determined: the position that is looked at most counts as always looked at.
    examined[views_of_position == 0] = 0.0
    most = examined.max()
    looks = np.bincount(of_pair, views * examined[of_position] / most)
    return ClickModel(
        {pair: float(value) for pair, value in zip(pairs, attractive * most, strict=True)},
        {pair: float(value) for pair, value in zip(pairs, looks, strict=True)},
        [float(value) for value in examined / most],
    )
