"""Chunks to documents: one result for each parent, or for each window of neighbouring chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fusion.columns import Candidates
from fusion.doc_ids import bare_ids
from fusion.rank_fields import Ints
from fusion.values import CollapseMode


@dataclass(frozen=True, slots=True)
class Collapsed:
    """The rows that remain, in their order, and for each other row the one that replaces it."""

    rows: Ints
    collapsed_into: Mapping[int, int] = field(default_factory=dict)


def collapse(candidates: Candidates, rows: Ints, mode: CollapseMode, radius: int = 1) -> Collapsed:
    """One row of each group, in its place.

    ``parent`` returns the best chunk of each parent document. ``window`` drops a chunk if a better chunk of the same
    parent is at most ``radius`` positions away. In both, a parent is dropped when one of its chunks is a result,
    whatever its own score: the answer is the passage. A document that is a chunk itself is never dropped as
    a parent. ``url`` is for a caller that knows the documents: here nothing is dropped.

    :param rows: of the candidates, best first.
    """
    fields = candidates.fields
    if mode in {"none", "url"} or fields is None:
        return Collapsed(rows)
    places = np.flatnonzero(fields.parent[rows] >= 0)
    if not len(places):
        return Collapsed(rows)
    chunk_rows = rows[places]
    columns = places, chunk_rows, fields.parent[chunk_rows], fields.chunk[chunk_rows]
    best: dict[int, dict[int, int]] = {}
    collapsed_into: dict[int, int] = {}
    remains = np.ones(len(rows), np.bool_)
    for place, row, parent, chunk in zip(*(column.tolist() for column in columns), strict=True):
        of_parent = best.setdefault(parent, {})
        better = next(iter(of_parent.values()), None) if mode == "parent" else _in_window(of_parent, chunk, radius)
        if better is None:
            of_parent[chunk] = row
        else:
            collapsed_into[row] = better
            remains[place] = False
    if dropped_parents := _parents_among(candidates, rows):
        remains &= ~np.isin(rows, list(dropped_parents))
    for row, parent in dropped_parents.items():
        collapsed_into[row] = next(iter(best[parent].values()))
    return Collapsed(rows[remains], collapsed_into)


def window(parent: str | None, chunk: int | None, radius: int) -> str | None:
    """The name of the window around a chunk: its parent, and the first and last chunk, from 0.

    ``None`` for a document that is no chunk, or whose position is unknown.
    """
    if parent is None or chunk is None:
        return None
    return f"{parent}:{max(0, chunk - radius)}-{chunk + radius}"


def _parents_among(candidates: Candidates, rows: Ints) -> dict[int, int]:
    """Rows of whole documents that have a chunk among ``rows``, each with the number of its id among the parents."""
    fields = candidates.fields
    if fields is None:
        return {}
    unchunked = rows[fields.parent[rows] < 0]
    number_by_id = {
        fields.parents[parent]: parent for parent in sorted(set(fields.parent[rows].tolist())) if parent >= 0
    }
    row_by_id = dict(zip(candidates.ids(unchunked), unchunked.tolist(), strict=True))
    found = {row_by_id[identity]: number for identity, number in number_by_id.items() if identity in row_by_id}
    # A parent that is not in the collection of its chunks is in the only other one that has it. Of several with one id
    # the first has it: it is the last to be put into the table.
    missing = [identity for identity in reversed(number_by_id) if identity not in row_by_id]
    number_by_bare_id = dict(zip(bare_ids(missing), (number_by_id[each] for each in missing), strict=True))
    if number_by_bare_id.keys() & (ids := bare_ids(row_by_id) if missing else []):
        elsewhere: dict[str, list[int]] = defaultdict(list)
        for (identity, row), id_ in zip(row_by_id.items(), ids, strict=True):
            if id_ in number_by_bare_id and identity not in number_by_id:
                elsewhere[id_].append(row)
        found |= {same[0]: number_by_bare_id[id_] for id_, same in elsewhere.items() if len(same) == 1}
    return found


def _in_window(of_parent: Mapping[int, int], chunk: int, radius: int) -> int | None:
    """The best result within the radius; chunks without a position form one window."""
    if chunk < 0:
        return of_parent.get(-1)
    within = {of_parent[each] for each in range(max(chunk - radius, 0), chunk + radius + 1) if each in of_parent}
    return next((row for row in of_parent.values() if row in within), None)
