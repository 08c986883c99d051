"""The sum of the contributions of the sources, and the order by it, for every strategy that adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusion.columns import Candidates
from fusion.rank_fields import Floats, Ints
from fusion.sort import descending_by_id
from fusion.source import Sources, described


@dataclass(frozen=True, slots=True)
class Fused:
    """All candidates in one order.

    :param rows: of the candidates, best first.
    :param raw: the strategy's own value, parallel to ``rows``.
    :param score: the fusion score in [0, 1], parallel to ``rows``, never rising.
    :param contributions: by source, for each document of its ranking, best first, in units of ``raw``.
    :param weights: by source; 1 where a source has none.
    """

    rows: Ints
    raw: Floats
    score: Floats
    contributions: Mapping[str, Floats]
    weights: Mapping[str, float]

    def above(self, min_score: float) -> Fused:
        """The candidates with a fusion score of at least ``min_score``."""
        if min_score <= 0:
            return self
        count = int(np.searchsorted(-self.score, -min_score, side="right"))
        if count == len(self.rows):
            return self
        return Fused(self.rows[:count], self.raw[:count], self.score[:count], self.contributions, self.weights)


def sum_contributions(
    candidates: Candidates,
    contributions: Mapping[str, Floats],
    weights: Mapping[str, float],
    sources: Sources,
    ceiling: float,
) -> Fused:
    """Add up contributions and order the candidates. Ties as in :func:`rank_by_sum`.

    :param contributions: by source, for each document of its ranking, best first.
    :param weights: what the contributions were weighted with, for display.
    :param ceiling: the sum of a document that is first in every source.
    """
    raw = raw_sums(candidates, contributions)
    rows = rank_by_sum(raw, candidates, sources)
    raw = raw[rows]
    # Rounding may carry a document that is first everywhere one unit in the last place past the ceiling.
    score = np.minimum(raw / ceiling, 1.0) if ceiling > 0 else np.zeros(len(raw))
    return Fused(rows, raw, score, contributions, weights)


def raw_sums(candidates: Candidates, contributions: Mapping[str, Floats]) -> Floats:
    """The sum of the contributions of each row. They are added in the order of the sources, so it is reproducible."""
    if not candidates.sources:
        return np.zeros(len(candidates))
    rows = np.concatenate([candidates.rows[source] for source in candidates.sources])
    values = np.concatenate([contributions[source] for source in candidates.sources])
    return np.bincount(rows, values, minlength=len(candidates)).astype(np.float64, copy=False)


def rank_by_sum(values: Floats, candidates: Candidates, sources: Sources, rows: Ints | None = None) -> Ints:
    """Rows by value, the largest first.

    Equal values are ordered by the position in the ranking of the source with the smallest ``tie_priority`` (documents
    that it did not return come last), then by id, ascending. If there is one source only, its own order decides.

    :param values: parallel to ``rows``.
    :param rows: the rows to order; all by default.
    """
    position = _tie_positions(candidates, sources)
    if rows is not None:
        position = position[rows]
    if rows is None:
        return descending_by_id(values, position, candidates.ids)
    return rows[descending_by_id(values, position, lambda indices: candidates.ids(rows[indices]))]


def _tie_positions(candidates: Candidates, sources: Sources) -> Ints:
    """The position of each row in the ranking that decides ties; the number of candidates where it has none."""
    priorities = {
        name: priority for name in candidates.sources if (priority := described(name, sources).tie_priority) is not None
    }
    if len(candidates.sources) == 1:
        return candidates.positions(candidates.sources[0])
    if not priorities:
        return np.full(len(candidates), len(candidates))
    return candidates.positions(min(priorities, key=priorities.__getitem__))
