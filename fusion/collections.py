"""One source's rankings of several collections, merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion.columns import Ranking
from fusion.rank_fields import DocId, DocumentFields


def merge_collections(rankings: Sequence[Ranking]) -> Ranking:
    """Merge rankings of one source. A document that two of them contain counts once, at its better score.

    The order is that of the scores, which one source gives on one scale; ties go to the better rank, then to the
    smaller id. Each document has the rank of its own collection: ``rrf`` treats the collections as parallel
    lists, all other strategies as one long list.

    :raises ValueError: if there is no ranking, or the rankings are of different sources.
    """
    names = {ranking.source for ranking in rankings}
    if len(names) != 1:
        raise ValueError(f"rankings of {len(names)} sources cannot be merged, allowed are rankings of one")
    if len(rankings) == 1:
        return rankings[0]
    ordered = sorted(
        (-document.score, document.rank, document.id, number, index)
        for number, ranking in enumerate(rankings)
        for index, document in enumerate(ranking)
    )
    first: dict[DocId, tuple[float, int, int, int]] = {}
    for negative, rank, id_, number, index in ordered:
        first.setdefault(id_, (-negative, rank, number, index))
    coverage = max(ranking.entity_coverage for ranking in rankings)
    tables = {id(ranking.table): ranking.table for ranking in rankings if len(ranking)}
    if len(tables) == 1:
        (table,) = tables.values()
        docs = np.array([rankings[number].docs[index] for _, _, number, index in first.values()], np.int64)
        scores = np.array([score for score, *_ in first.values()], np.float64)
        ranks = np.array([rank for _, rank, *_ in first.values()], np.int64)
        return Ranking(rankings[0].source, docs, scores, ranks, table, coverage)
    fields: dict[DocId, DocumentFields] = {}
    for ranking in rankings:
        if (columns := ranking.fields) is not None:
            rows = ((id_, columns.row(row)) for row, id_ in enumerate(ranking.ids))
            fields |= {id_: row for id_, row in rows if row != DocumentFields()}
    return Ranking.of_ids(
        rankings[0].source,
        tuple(first),
        [score for score, *_ in first.values()],
        coverage,
        fields,
        [rank for _, rank, *_ in first.values()],
    )
