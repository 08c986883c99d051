"""Adds the text of the chunks around a hit to its text, with one read for many hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

import msgspec

from adapters import Document, DocumentReader, Record, Snapshot
from adapters.model.batching import batches
from adapters.model.filter import And, Eq, Filter, In, Or, normal
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.budget import NEIGHBORS
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Page
from orchestrator.planning.plan import Plan
from orchestrator.results.text_limit import MAX_TEXT_CHARS
from orchestrator.schema.search import Degraded, SearchHit

BOUNDARY = "\n[CHUNK BOUNDARY]\n"
"""Separates two chunks."""

_MAX_DOCUMENTS_PER_POSITION = 4
"""Documents that are read per chunk position, on average: there should be one, but there may be several."""

_MAX_POSITIONS = 256
"""Chunk positions that are read at once."""

_ChunkPosition: TypeAlias = tuple[str, str, int]
"""Collection, parent, chunk index: neighbours of a chunk are in its collection."""


async def add_neighbors(
    plan: Plan, page: Page, snapshot: Snapshot, context: SearchContext
) -> tuple[Page, list[Degraded]]:
    """The page with neighbouring chunks added to each hit. A failure is reported, and the hits stay."""
    if not plan.page.neighbors:
        return page, []
    async with context.best_effort("neighbors", NEIGHBORS) as attempt:
        hits = await _with_neighbors(page.hits, plan.page.neighbors, plan.ranking.access, snapshot.documents)
        page = replace(page, hits=hits)
    return page, attempt.failures


async def _with_neighbors(
    hits: Sequence[SearchHit], count: int, access: Filter, documents: DocumentReader
) -> tuple[SearchHit, ...]:
    """Each chunk's text with that of up to ``count`` chunks before and after it, where they exist and are visible.

    If two documents have the same position, the one with the smaller id is used.

    :raises AdapterError: if the documents cannot be read.
    """
    extended: list[SearchHit] = []
    length = 0
    for some_hits in batches(hits, max(1, _MAX_POSITIONS // (2 * count + 1))):
        if length > MAX_TEXT_CHARS:  # further text is cut in any case
            extended += some_hits
            continue
        positions = {each for hit in some_hits if (position := _position(hit)) for each in _around(position, count)}
        chunks = await _chunks(positions, access, documents) if positions else {}
        extended += (_extended(hit, count, chunks) for hit in some_hits)
        length += sum(len(hit.text) for hit in extended[-len(some_hits) :])
    return tuple(extended)


async def _chunks(
    positions: Set[_ChunkPosition], access: Filter, documents: DocumentReader
) -> Mapping[_ChunkPosition, Document]:
    records = await documents.find(_at_positions(positions, access), _MAX_DOCUMENTS_PER_POSITION * len(positions))
    chunks: dict[_ChunkPosition, Document] = {}
    is_visible = visibility_check(access)
    for record in sorted(filter(is_visible, records), key=lambda record: record.document.id, reverse=True):
        position = _record_position(record)
        if position and position in positions:
            chunks[position] = record.document
    return chunks


def _at_positions(positions: Iterable[_ChunkPosition], access: Filter) -> Filter:
    indexes: dict[tuple[str, str], list[float]] = {}
    for collection, parent, index in positions:
        indexes.setdefault((collection, parent), []).append(float(index))
    chunks = Or(
        tuple(
            And((Eq("collection", collection), Eq("parent_id", parent), In("chunk_index", tuple(of_parent))))
            for (collection, parent), of_parent in indexes.items()
        )
    )
    return normal(And((access, chunks)))


def _extended(hit: SearchHit, count: int, chunks: Mapping[_ChunkPosition, Document]) -> SearchHit:
    position = _position(hit)
    if position is None:
        return hit
    around = [each for each in _around(position, count) if each in chunks]
    before = [chunks[each] for each in around if each[2] < position[2]]
    after = [chunks[each] for each in around if each[2] > position[2]]
    start = sum(len(chunk.text) + len(BOUNDARY) for chunk in before)
    return msgspec.structs.replace(
        hit,
        text=BOUNDARY.join([*(chunk.text for chunk in before), hit.text, *(chunk.text for chunk in after)]),
        span=(start, start + len(hit.text)),
        neighbor_ids=tuple(chunk.id for chunk in (*before, *after)),
    )


def _around(position: _ChunkPosition, count: int) -> list[_ChunkPosition]:
    collection, parent, index = position
    return [(collection, parent, each) for each in range(max(0, index - count), index + count + 1)]


def _position(hit: SearchHit) -> _ChunkPosition | None:
    if hit.parent_id is None or hit.chunk_index is None:
        return None
    return hit.collection, hit.parent_id, hit.chunk_index


def _record_position(record: Record) -> _ChunkPosition | None:
    document = record.document
    if document.parent_id is None or document.chunk_index is None:
        return None
    return document.collection, document.parent_id, document.chunk_index
