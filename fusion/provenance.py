"""What each source contributed to a document: made for the documents of one page only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from fusion.columns import Candidates
from fusion.rank_fields import DocId, Ints
from fusion.sums import Fused


class Contribution(Struct, frozen=True):
    """What one source contributed to one hit. ``rank`` starts at 1; ``contribution`` is in units of the raw sum."""

    rank: int
    score: float
    weight: float
    contribution: float


class FusedHit(Struct, frozen=True):
    """A document with its fusion score and where it comes from.

    ``raw`` is the strategy's own sum; ``fusion_score`` is in [0, 1], 1.0 being first place in every source. ``sources``
    has a key for every source that answered, ``None`` where it did not return the document.
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
    columns = [
        (
            source,
            fused.weights.get(source, 1.0),
            candidates.ranks[source][chosen].tolist(),
            candidates.scores[source][chosen].tolist(),
            fused.contributions[source][chosen].tolist(),
        )
        for source in candidates.sources
    ]
    return [
        FusedHit(
            id_,
            raw[index],
            score[index],
            {
                source: Contribution(ranks[index], scores[index], weight, contributions[index])
                if ranks[index]
                else None
                for source, weight, ranks, scores, contributions in columns
            },
        )
        for index, id_ in enumerate(candidates.ids(chosen))
    ]
