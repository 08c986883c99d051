"""One source's rankings of several collections, merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion.columns import Ranking, join_by_id
from fusion.rank_fields import Ints
from fusion.sort import descending_by_id


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
    coverage = max(ranking.entity_coverage for ranking in rankings)
    found = [ranking for ranking in rankings if len(ranking)]
    if len({id(ranking.table) for ranking in found}) > 1:
        found = _of_one_table(found)
    if not found:
        return Ranking.empty(rankings[0].source, coverage)
    docs = np.concatenate([ranking.docs for ranking in found])
    scores = np.concatenate([ranking.scores for ranking in found])
    ranks = np.concatenate([ranking.ranks for ranking in found])
    table = found[0].table
    order = _first_of_each(docs, descending_by_id(scores, ranks, lambda indices: table.ids(docs[indices])))
    return Ranking(rankings[0].source, docs[order], scores[order], ranks[order], table, coverage)


def _first_of_each(docs: Ints, order: Ints) -> Ints:
    """The order without the further indices of a document that occurs several times."""
    _, first = np.unique(docs[order], return_index=True)
    return order if len(first) == len(order) else order[np.sort(first)]


def _of_one_table(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Rankings of different tables over one table of all their documents, joined by id."""
    _, rows, table, _ = join_by_id(rankings)
    return [
        Ranking(ranking.source, docs, ranking.scores, ranking.ranks, table)
        for ranking, docs in zip(rankings, rows, strict=True)
    ]
