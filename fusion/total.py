"""Rankings into one by adding up what each gives: shared by every strategy that is a sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusion.ranking import Contribution, DocId, FusedHit, Ranking

_UNRANKED = 1 << 62
"""Sorts after every rank that a source can give."""

Shares = Mapping[str, Sequence[float]]
"""By source, what each place of its ranking gives to the document that stands there."""


def total(
    rankings: Sequence[Ranking], shares: Shares, weights: Mapping[str, float], ceiling: float, limit: int
) -> list[FusedHit]:
    """At most ``limit`` hits, best first. Ties are broken by the keyword rank, up, then by the id, up.

    The order of ``rankings`` never matters. Contributions are made out for the hits that are kept alone.

    :param weights: what ``shares`` were weighted with, to be told; 1 where a source has none.
    :param ceiling: the sum of a document that is first everywhere.
    """
    ordered = in_order(rankings)
    raw = sums(ordered, shares)
    places = {each.source: dict(zip(each.ids, range(len(each)), strict=True)) for each in ordered}
    return [
        FusedHit(
            id=id_,
            raw=raw[id_],
            # Rounding may carry a document that is first everywhere one ulp past the ceiling.
            fusion_score=min(raw[id_] / ceiling, 1.0) if ceiling > 0 else 0.0,
            sources={
                each.source: _contribution(each, places[each.source].get(id_), shares, weights) for each in ordered
            },
        )
        for id_ in best(raw, limit, places.get("keyword", {}))
    ]


def in_order(rankings: Sequence[Ranking]) -> list[Ranking]:
    """By source. Floating-point addition is not associative: one order of summing makes the same bytes every time."""
    return sorted(rankings, key=lambda ranking: ranking.source)


def sums(ordered: Sequence[Ranking], shares: Shares) -> dict[DocId, float]:
    """Each document's sum."""
    raw: dict[DocId, float] = {}
    for ranking in ordered:
        for id_, share in zip(ranking.ids, shares[ranking.source], strict=True):
            raw[id_] = raw.get(id_, 0.0) + share
    return raw


def best(raw: Mapping[DocId, float], limit: int, keyword: Mapping[DocId, int]) -> list[DocId]:
    """The ``limit`` best ids. Only the part that is kept, and what ties with its end, pays for the tie rule.

    :param keyword: places in the keyword ranking.
    """
    by_score = sorted(raw, key=raw.__getitem__, reverse=True)
    if not 0 < limit < len(by_score):
        end = max(0, min(limit, len(by_score)))
    else:
        end = limit
        while end < len(by_score) and raw[by_score[end]] == raw[by_score[limit - 1]]:
            end += 1
    by_score = by_score[:end]
    by_score.sort(key=lambda id_: (-raw[id_], keyword.get(id_, _UNRANKED), id_))
    return by_score[:limit]


def _contribution(
    ranking: Ranking, place: int | None, shares: Shares, weights: Mapping[str, float]
) -> Contribution | None:
    if place is None:
        return None
    weight = weights.get(ranking.source, 1.0)
    return Contribution(place + 1, ranking.scores[place], weight, shares[ranking.source][place])
