"""Chunks to documents: one result for each parent, or for each window of neighbouring chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fusion.ranking import DocId, Facts

Collapse: TypeAlias = Literal["none", "parent", "window"]


@dataclass(frozen=True, slots=True)
class Collapsed:
    """What stays, in the order in which it came, and what each of the others gave way to."""

    ids: tuple[DocId, ...]
    into: Mapping[DocId, DocId] = field(default_factory=dict)


def collapse(ids: Sequence[DocId], facts: Mapping[DocId, Facts], by: Collapse, radius: int = 1) -> Collapsed:
    """Keep one of each group, where it stands.

    ``parent``: of the chunks of one parent the best, which comes first. ``window``: a chunk gives way to a better one
    of its parent that is ``radius`` places away or less. In both, a whole document gives way to its chunks, however
    good it is itself: what is wanted is the place that answers. A document that is a chunk itself is not whole.

    :param ids: best first.
    """
    if by == "none" or not facts:
        return Collapsed(tuple(ids))
    chunks = {id_: held for id_ in ids if (held := facts.get(id_)) is not None and held.parent is not None}
    if not chunks:
        return Collapsed(tuple(ids))
    kept: list[DocId] = []
    into: dict[DocId, DocId] = {}
    best: dict[DocId, dict[int | None, DocId]] = {}
    parents = {held.parent for held in chunks.values()}
    for id_ in ids:
        chunk = chunks.get(id_)
        if chunk is None or chunk.parent is None:
            if id_ not in parents:
                kept.append(id_)
            continue
        places = best.setdefault(chunk.parent, {})
        better = next(iter(places.values()), None) if by == "parent" else _near(places, chunk.chunk, radius)
        if better is None:
            places[chunk.chunk] = id_
            kept.append(id_)
        else:
            into[id_] = better
    into |= {id_: next(iter(best[id_].values())) for id_ in ids if id_ not in chunks and id_ in best}
    return Collapsed(tuple(kept), into)


def window(facts: Facts | None, radius: int) -> str | None:
    """What the window around a chunk is called: its parent, and the first and the last chunk, from 0.

    ``None`` for what is no chunk, or stands at no known place.
    """
    if facts is None or facts.parent is None or facts.chunk is None:
        return None
    return f"{facts.parent}:{max(0, facts.chunk - radius)}-{facts.chunk + radius}"


def _near(places: Mapping[int | None, DocId], place: int | None, radius: int) -> DocId | None:
    """The best of what stays within the radius; chunks without a place are told apart by nothing."""
    if place is None:
        return places.get(None)
    near = {places[each] for each in range(place - radius, place + radius + 1) if each in places}
    return next((id_ for id_ in places.values() if id_ in near), None) if len(near) > 1 else next(iter(near), None)
