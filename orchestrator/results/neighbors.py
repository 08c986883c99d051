"""Adds the text of the chunks around a hit to its text, or only their ids, with one read for many hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import msgspec

from adapters import Document
from adapters.model.batching import batches
from adapters.model.filter import Filter
from adapters.ports import DocumentReader, Snapshot
from adapters.ports.documents import MAX_PER_POSITION, ChunkPosition, at_positions, position_of
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.budget import NEIGHBORS
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Page
from orchestrator.planning.plan import Plan
from orchestrator.results.text_limit import MAX_TEXT_CHARS
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import Degraded

BOUNDARY = "\n[CHUNK BOUNDARY]\n"
"""Separates two chunks."""

_MAX_POSITIONS = 256
"""Chunk positions that are read at once."""


async def add_neighbors(
    plan: Plan, page: Page, snapshot: Snapshot, context: SearchContext
) -> tuple[Page, list[Degraded]]:
    """The page with the neighbouring chunks of each hit: their ids, and their texts if the request wants them.

    A failure is reported, and the hits stay.
    """
    access, documents = plan.ranking.access, snapshot.documents
    async with context.best_effort("neighbors", NEIGHBORS) as attempt:
        if plan.page.neighbors:
            hits = await _with_neighbors(page.hits, plan.page.neighbors, access, documents)
        else:
            hits = await _with_ids(page.hits, access, documents)
        page = replace(page, hits=hits)
    return page, attempt.failures


def has_chunks(page: Page) -> bool:
    """Whether a hit is a chunk, so that it may have neighbours."""
    return any(map(_position, page.hits))


async def _with_ids(hits: Sequence[SearchHit], access: Filter, documents: DocumentReader) -> tuple[SearchHit, ...]:
    """Each chunk with the ids of the chunks right before and after it, where they exist and are visible.

    :raises AdapterError: if the documents cannot be read.
    """
    positions = [_position(hit) for hit in hits]
    around = [[each for each in _around(position, 1) if each != position] for position in positions if position]
    ids = await documents.chunk_ids(sorted({each for some in around for each in some}), access)
    neighbors = iter(around)
    return tuple(
        msgspec.structs.replace(hit, neighbor_ids=tuple(ids[each] for each in next(neighbors) if each in ids))
        if position
        else hit
        for hit, position in zip(hits, positions, strict=True)
    )


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
    positions: Set[ChunkPosition], access: Filter, documents: DocumentReader
) -> Mapping[ChunkPosition, Document]:
    records = await documents.find(at_positions(positions, access), MAX_PER_POSITION * len(positions))
    is_visible = visibility_check(access)
    chunks: dict[ChunkPosition, Document] = {}
    for record in sorted(filter(is_visible, records), key=lambda record: record.document.id, reverse=True):
        position = position_of(record.document)
        if position and position in positions:
            chunks[position] = record.document
    return chunks


def _extended(hit: SearchHit, count: int, chunks: Mapping[ChunkPosition, Document]) -> SearchHit:
    position = _position(hit)
    if position is None:
        return hit
    around = [each for each in _around(position, count) if each in chunks]
    before = [chunks[each] for each in around if each.chunk < position.chunk]
    after = [chunks[each] for each in around if each.chunk > position.chunk]
    start = sum(len(chunk.text) + len(BOUNDARY) for chunk in before)
    return msgspec.structs.replace(
        hit,
        text=BOUNDARY.join([*(chunk.text for chunk in before), hit.text, *(chunk.text for chunk in after)]),
        span=(start, start + len(hit.text)),
        neighbor_ids=tuple(chunk.id for chunk in (*before, *after)),
    )


def _around(position: ChunkPosition, count: int) -> list[ChunkPosition]:
    first = max(0, position.chunk - count)
    return [position._replace(chunk=each) for each in range(first, position.chunk + count + 1)]


def _position(hit: SearchHit) -> ChunkPosition | None:
    if hit.parent_id is None or hit.chunk_index is None:
        return None
    return ChunkPosition(hit.collection, hit.parent_id, hit.chunk_index)
