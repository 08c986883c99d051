"""One source's rankings of several collections into one."""

from __future__ import annotations

from collections.abc import Sequence

from fusion.ranking import DocId, Ranking


def merged(parts: Sequence[Ranking]) -> Ranking:
    """The rankings of one source, of parts that have no document in common; if they have, its better place counts.

    The order is that of the scores, which one source gives on one scale; ties go to the better rank, then to the
    smaller id. Each document keeps the rank that it has within its own part: ``rrf`` treats the parts as lists beside
    each other, all other strategies as one long list.

    :raises ValueError: if there is no part, or the parts are of different sources.
    """
    if not parts or len({part.source for part in parts}) > 1:
        raise ValueError(f"the parts of one ranking are of {len({part.source for part in parts})} sources, not of one")
    if len(parts) == 1:
        return parts[0]
    places: dict[DocId, tuple[float, int]] = {}
    for negative, rank, id_ in sorted((-hit.score, hit.rank, hit.id) for part in parts for hit in part):
        places.setdefault(id_, (-negative, rank))
    return Ranking(
        parts[0].source,
        tuple(places),
        tuple(score for score, _ in places.values()),
        coverage=max(part.coverage for part in parts),
        facts={id_: facts for part in parts for id_, facts in part.facts.items()},
        ranks=tuple(rank for _, rank in places.values()),
    )
