"""Two rankings in one, so that what users do with its hits says which of the two is better.

Team draft: Radlinski, Kurup, Joachims: "How Does Clickthrough Data Reflect Retrieval Quality?", CIKM 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

from fusion.values import CollapseMode
from orchestrator.execution.stage_results import Ranked


class Entry(NamedTuple):
    """A document of a ranking.

    :param id: of the document; ``group``: equal for documents of which a response has one at most.
    """

    id: str
    group: str


class Drafted(NamedTuple):
    """A place in the draft.

    :param is_first: whether the document is of the first ranking.
    :param place: in its ranking, from 0.
    :param counts: whether the other ranking added a document in the same round: otherwise what users do with this one
        says nothing of both.
    """

    is_first: bool
    place: int
    counts: bool


def entries(ranked: Ranked, collapse: CollapseMode) -> list[Entry]:
    """The documents of a ranking, best first."""
    candidates = ranked.fused.candidates
    ids, fields = candidates.ids(ranked.rows), candidates.fields
    if collapse != "parent" or fields is None:
        return [Entry(id_, id_) for id_ in ids]
    parents = fields.parent[ranked.rows].tolist()
    return [
        Entry(id_, fields.parents[parent] if parent >= 0 else id_) for id_, parent in zip(ids, parents, strict=True)
    ]


def team_draft(first: Sequence[Entry], second: Sequence[Entry], first_begins: Callable[[int], bool]) -> list[Drafted]:
    """Both rankings in one: in each round each adds its best document that is not there yet.

    No document of a ranking is left out because of another one of the same ranking, and none of the first ranking but
    for one of its group of the second: the list has every group of both.

    :param first_begins: whether the first ranking begins a round, by its number from 0.
    """
    rankings = {True: first, False: second}
    next_place = {True: 0, False: 0}
    ids: set[str] = set()
    groups: dict[bool, set[str]] = {True: set(), False: set()}
    drafted: list[Drafted] = []

    def found(is_first: bool) -> int | None:
        """The place of the best document that is not there yet."""
        ranking, others = rankings[is_first], groups[not is_first]
        for place in range(next_place[is_first], len(ranking)):
            if ranking[place].id not in ids and ranking[place].group not in others:
                next_place[is_first] = place
                return place
        next_place[is_first] = len(ranking)
        return None

    for number in count():
        begins = first_begins(number)
        added: list[tuple[bool, int]] = []
        for is_first in (begins, not begins):
            place = found(is_first)
            if place is not None:
                entry = rankings[is_first][place]
                ids.add(entry.id)
                groups[is_first].add(entry.group)
                added.append((is_first, place))
        if not added:
            return drafted
        drafted += [Drafted(*each, counts=len(added) == len(rankings)) for each in added]
    raise AssertionError  # count() never ends
