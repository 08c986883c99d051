"""The three sources, and short forms of what several tests of fusion do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from adapters.model import sources
from fusion.columns import Candidates, IdTable, Ranking
from fusion.provenance import FusedHit, fused_hits
from fusion.rank_fields import Floats, RankFields
from fusion.source import Sources
from fusion.strategy import Strategy
from fusion.values import DocId, DocumentFields

SOURCES: Sources = {source.name: source for source in sources.SOURCES}


def hits_of(
    strategy: Strategy, rankings: Sequence[Ranking], weights: Mapping[str, float] | None = None
) -> list[FusedHit]:
    """All hits of ``rankings``, best first."""
    candidates = Candidates.of(rankings)
    return fused_hits(candidates, strategy(candidates, weights or {}, SOURCES))


def listed(fields: Mapping[DocId, DocumentFields], *ids: DocId) -> Candidates:
    """Candidates of one source without a tie rule: row ``n`` is ``ids[n]``."""
    scores = [float(-index) for index in range(len(ids))]
    return Candidates.of([Ranking.of_ids("listed", ids, scores, fields=fields)])


def column(candidates: Candidates, factors: Mapping[DocId, float]) -> Floats:
    """A factor for each row; 1 for a document without one."""
    rows = np.arange(len(candidates))
    return np.array([factors.get(id_, 1.0) for id_ in candidates.ids(rows)], np.float64)


def numbered(rankings: Sequence[Ranking], names: Sequence[DocId], fields: RankFields | None = None) -> list[Ranking]:
    """The same rankings with numbers of one common table, in which document ``n`` is ``names[n]``."""
    table = IdTable(tuple(names), fields)
    numbers = {id_: number for number, id_ in enumerate(names)}
    return [
        Ranking(
            ranking.source,
            np.array([numbers[id_] for id_ in ranking.ids], np.int64),
            ranking.scores,
            ranking.ranks,
            table,
            ranking.entity_coverage,
        )
        for ranking in rankings
    ]
