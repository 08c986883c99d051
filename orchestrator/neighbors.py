"""A hit among the chunks around it: one question for all hits, the texts joined in the order of their parent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from adapters import DocumentReader, Record
from adapters.filter import And, Eq, Filter, In, Or, normal
from orchestrator.contract import SearchHit
from orchestrator.hydrate import lock

BOUNDARY = "\n[CHUNK BOUNDARY]\n"
"""Stands between two chunks."""

_CLAIMS = 4
"""Documents that are read for one place at most, all places together: there should be one."""

_Place: TypeAlias = tuple[str, str, int]
"""Collection, parent, chunk index: neighbours of a chunk lie in the collection that it lies in."""


async def widen(
    hits: Sequence[SearchHit], count: int, access: Filter, documents: DocumentReader
) -> tuple[SearchHit, ...]:
    """Each chunk's text with that of up to ``count`` chunks before and after it, as far as they are there.

    Missing neighbours are left out, and so are those that the caller may not see. Of two documents that claim one place
    the one of the smaller id is taken.

    :param access: what the caller may see, in normal form.
    :raises AdapterError: if the documents cannot be read.
    """
    wanted = {place for hit in hits if (at := _place(hit)) for place in _around(at, count)}
    if not wanted:
        return tuple(hits)
    groups: dict[tuple[str, str], list[float]] = {}
    for collection, parent, index in wanted:
        groups.setdefault((collection, parent), []).append(float(index))
    places = Or(
        tuple(
            And((Eq("collection", collection), Eq("parent_id", parent), In("chunk_index", tuple(indexes))))
            for (collection, parent), indexes in groups.items()
        )
    )
    found = await documents.find(normal(And((access, places))), _CLAIMS * len(wanted))
    may_leave = lock(access)
    chunks: dict[_Place, str] = {}
    for record in sorted(filter(may_leave, found), key=lambda record: record.document.id, reverse=True):
        if (at := _chunk(record)) in wanted:
            chunks[at] = record.document.text
    return tuple(_widened(hit, count, chunks) for hit in hits)


def _widened(hit: SearchHit, count: int, chunks: Mapping[_Place, str]) -> SearchHit:
    at = _place(hit)
    if at is None:
        return hit
    before = [chunks[each] for each in _around(at, count) if each[2] < at[2] and each in chunks]
    after = [chunks[each] for each in _around(at, count) if each[2] > at[2] and each in chunks]
    start = sum(len(text) + len(BOUNDARY) for text in before)
    return msgspec.structs.replace(
        hit, text=BOUNDARY.join([*before, hit.text, *after]), span=(start, start + len(hit.text))
    )


def _around(at: _Place, count: int) -> Iterable[_Place]:
    collection, parent, index = at
    return [(collection, parent, each) for each in range(max(0, index - count), index + count + 1)]


def _place(hit: SearchHit) -> _Place | None:
    if hit.parent_id is None or hit.chunk_index is None:
        return None
    return hit.collection, hit.parent_id, hit.chunk_index


def _chunk(record: Record) -> _Place | None:
    document = record.document
    if document.parent_id is None or document.chunk_index is None:
        return None
    return document.collection, document.parent_id, document.chunk_index
