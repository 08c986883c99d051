"""Rankings into one by adding up what each gives: shared by every strategy that is a sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusion.fused import Fused, Shares
from fusion.ranking import DocId, Ranking


def total(rankings: Sequence[Ranking], shares: Shares, weights: Mapping[str, float], ceiling: float) -> Fused:
    """All documents by their sums; the order of ``rankings`` never matters. Ties as in :func:`by_sum`.

    :param weights: what ``shares`` were weighted with, to be told; 1 where a source has none.
    :param ceiling: the sum of a document that is first everywhere.
    """
    ordered = in_order(rankings)
    sums = add_up(ordered, shares)
    ids = by_sum(sums, ordered)
    raw = tuple([sums[id_] for id_ in ids])
    # Rounding may carry a document that is first everywhere one ulp past the ceiling.
    scores = tuple([min(each / ceiling, 1.0) for each in raw]) if ceiling > 0 else (0.0,) * len(raw)
    return Fused(tuple(ids), raw, scores, tuple(ordered), shares, weights)


def in_order(rankings: Sequence[Ranking]) -> list[Ranking]:
    """By source. Floating-point addition is not associative: one order of summing makes the same bytes every time."""
    return sorted(rankings, key=lambda ranking: ranking.source)


def add_up(ordered: Sequence[Ranking], shares: Shares) -> dict[DocId, float]:
    """Each document's sum."""
    sums: dict[DocId, float] = {}
    for ranking in ordered:
        for id_, share in zip(ranking.ids, shares[ranking.source], strict=True):
            sums[id_] = sums.get(id_, 0.0) + share
    return sums


def by_sum(sums: Mapping[DocId, float], rankings: Sequence[Ranking]) -> list[DocId]:
    """The largest sum first. Ties are broken by the keyword rank, up, then by the id, up."""
    keyword = next((each.ids for each in rankings if each.source == "keyword"), ())
    # In the order of the tie rule first: sorting by the sum leaves equal ones as they stand.
    ranked = [id_ for id_ in keyword if id_ in sums]
    ids = [*ranked, *sorted(sums.keys() - set(ranked))]
    ids.sort(key=sums.__getitem__, reverse=True)
    return ids
