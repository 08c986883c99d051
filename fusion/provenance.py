"""The contribution of each source to a document, computed for the documents of one page only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from fusion.columns import Candidates
from fusion.rank_fields import Ints
from fusion.sums import Fused
from fusion.values import Contribution, DocId


class FusedHit(Struct, frozen=True, gc=False):
    """A document with its fusion score and where it comes from.

    ``raw`` is the strategy's own sum; ``fusion_score`` is in [0, 1], 1.0 being first place in every source. ``sources``
    has a key for every source with a ranking, ``None`` where it did not return the document.
    """

    id: DocId
    raw: float
    fusion_score: float
    sources: Mapping[str, Contribution | None]


def fused_hits(candidates: Candidates, fused: Fused, rows: Ints | None = None) -> list[FusedHit]:
    """Hits of some rows, by default of all, best first.

    :param rows: of the candidates, each among ``fused.rows``, in the order of the result.
    :raises IndexError: for a row that is not among them.
    """
    chosen = fused.rows if rows is None else rows
    position = np.full(len(candidates), len(fused.rows))
    position[fused.rows] = np.arange(len(fused.rows))
    raw, score = fused.raw[position[chosen]].tolist(), fused.score[position[chosen]].tolist()
    by_source = {source: _contributions(candidates, fused, source, chosen) for source in candidates.sources}
    return [
        FusedHit(
            id_,
            raw[index],
            score[index],
            {source: contributions[index] for source, contributions in by_source.items()},
        )
        for index, id_ in enumerate(candidates.ids(chosen))
    ]


def _contributions(candidates: Candidates, fused: Fused, source: str, rows: Ints) -> list[Contribution | None]:
    """The contribution of a source to each of some rows; ``None`` where it did not return the document."""
    positions, absent = candidates.positions(source).take(rows), len(candidates)
    if not len(candidates.rows[source]):
        return [None] * len(positions)
    weight = fused.weights.get(source, 1.0)
    columns = (candidates.ranks[source], candidates.scores[source], fused.contributions[source])
    ranks, scores, contributions = (column.take(positions, mode="clip").tolist() for column in columns)
    return [
        None if position == absent else Contribution(rank, score, weight, contribution)
        for position, rank, score, contribution in zip(positions.tolist(), ranks, scores, contributions, strict=True)
    ]
