"""Mixes the hits of two rankings, so that what users do with them says which ranking is better.

Team draft: Radlinski, Kurup, Joachims: "How Does Clickthrough Data Reflect Retrieval Quality?", CIKM 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from fusion.values import CollapseMode
from orchestrator.schema.hits import SearchHit


def team_draft(
    first: Sequence[SearchHit],
    second: Sequence[SearchHit],
    first_begins: Callable[[int], bool],
    key: Callable[[SearchHit], object],
) -> list[tuple[SearchHit, bool]]:
    """The rankings in one, and whether each hit is of the first one. It ends when all of the first one are in it.

    In each round both rankings add their best hit that is not there yet.

    :param first_begins: whether the first ranking begins a round, by its number from 0.
    :param key: equal for hits that may not both be in it.
    """
    drafted: list[tuple[SearchHit, bool]] = []
    taken: set[object] = set()
    left = {key(hit) for hit in first}
    waiting = {True: iter(first), False: iter(second)}
    for number in count():
        begins = first_begins(number)
        for is_first in (begins, not begins):
            if not left:
                return drafted
            hit = next((hit for hit in waiting[is_first] if key(hit) not in taken), None)
            if hit is not None:
                taken.add(key(hit))
                left.discard(key(hit))
                drafted.append((hit, is_first))
    raise AssertionError  # count() never ends


def _id(hit: SearchHit) -> object:
    return hit.collection, hit.id


def _parent(hit: SearchHit) -> object:
    return hit.collection, hit.parent_id or hit.id


def _window(hit: SearchHit) -> object:
    return hit.collection, hit.window_id or hit.id


def _url(hit: SearchHit) -> object:
    return hit.url or _id(hit)


HIT_KEYS: Mapping[CollapseMode, Callable[[SearchHit], object]] = {
    "none": _id,
    "parent": _parent,
    "window": _window,
    "url": _url,
}
"""What a response has one hit of at most."""
