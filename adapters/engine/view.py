"""One committed state of the embedded index, open for reading."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import anyio.to_thread
import numpy as np
from cachetools import LRUCache

from adapters.engine import listing
from adapters.engine.columns import Flags
from adapters.engine.component import IndexComponent
from adapters.engine.manifest import Manifest
from adapters.engine.segment import Segment
from adapters.engine.segment_set import SegmentSet
from adapters.model.batching import batches
from adapters.model.document import Record, Scope
from adapters.model.facets import Facet
from adapters.model.filter import Filter
from adapters.model.filter_hash import filter_key
from adapters.model.protection import Protection
from adapters.ports.documents import MAX_PAGE_BYTES, ChunkPosition, DocumentPage
from adapters.ports.listing import Listing, SortKey
from adapters.ports.replica import VectorRecord
from fusion.columns import Documents
from fusion.doc_ids import doc_id, id_and_collection
from fusion.rank_fields import Ints
from fusion.values import DocId

T = TypeVar("T")

_MAX_BYTES_PER_ITERATION = 262_144
"""Maximum bytes of records that are decoded in one event loop iteration."""
_MAX_COUNTED = 10_000
"""Maximum number of documents whose values are counted on the event loop."""
_MAX_CACHED_COUNTS = 10_000
"""Maximum number of cached counts, one for each value: with a million documents, counting takes milliseconds."""
_BATCH_DOCUMENTS = 16
"""Number of documents in memory at a time if only one field of each is needed."""


@dataclass(frozen=True, slots=True)
class IndexView:
    """A state of the index. It never changes, whatever is written meanwhile.

    It is a :class:`adapters.ports.DocumentReader` of that state.
    """

    manifest: Manifest
    segments: SegmentSet
    opened: Mapping[str, object]
    _counted: LRUCache[tuple[str, bytes], dict[str, int]] = field(
        default_factory=lambda: LRUCache(_MAX_CACHED_COUNTS, getsizeof=lambda counts: len(counts) + 1),
        init=False,
        repr=False,
        compare=False,
    )

    def component(self, component: IndexComponent[T]) -> T:
        """The index of a component, as :meth:`IndexComponent.open` returned it."""
        return cast(T, self.opened[component.name])

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[DocId, Record]:
        """See :class:`adapters.ports.DocumentFetcher`."""
        group = (scope.tenant, scope.environment)
        rows: Iterable[tuple[Segment, int]]
        if documents.table is self.segments:  # then they need not be looked up
            rows = map(self.segments.locate, documents.docs.tolist())
        else:
            found = (self.segments.find((*group, id_)) for id_ in dict.fromkeys(documents.ids))
            rows = (row for row in found if row)
        records = await _decoded(rows)
        return {each.doc_id: each for each in records if (each.tenant, each.environment) == group}

    async def protections(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Protection]:
        """See :class:`adapters.ports.ProtectionReader`."""
        found: dict[DocId, Protection] = {}
        for batch in batches(ids, _BATCH_DOCUMENTS):
            records = await self.fetch(scope, Documents.of_ids(batch))
            found |= {id_: record.document.protection for id_, record in records.items()}
        return found

    async def find(self, condition: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentFinder`."""
        return await _decoded(map(self.segments.locate, self.segments.passing(condition)[:limit].tolist()))

    async def chunk_ids(self, positions: Sequence[ChunkPosition], condition: Filter) -> dict[ChunkPosition, str]:
        """See :class:`adapters.ports.DocumentFinder`."""
        segments = self.segments
        flags = segments.mask(condition).flags
        parents = [(doc_id(each.parent_id, each.collection), each.chunk) for each in positions]
        found = zip(positions, segments.chunks(parents), strict=True)
        passing = {position: [row for row in rows if flags[row]] for position, rows in found}
        return {
            position: min(id_and_collection(id_)[0] for id_ in segments.ids(np.array(rows, np.int64)))
            for position, rows in passing.items()
            if rows
        }

    async def page(self, condition: Filter, limit: int, start: str | None = None) -> DocumentPage:
        """See :class:`adapters.ports.DocumentFinder`. The order is that of the ids."""
        segments = self.segments
        by_id = await anyio.to_thread.run_sync(lambda: segments.by_id)
        passing = by_id[segments.mask(condition).flags[by_id]]
        first = 0 if start is None else bisect_right(passing, start, key=segments.id)
        rows: list[tuple[Segment, int]] = []
        size_bytes = 0
        for position in passing[first : first + limit].tolist():
            segment, row = segments.locate(position)
            size_bytes += segment.size_bytes(row)
            if rows and size_bytes > MAX_PAGE_BYTES:
                break
            rows.append((segment, row))
        is_last = first + len(rows) >= len(passing)
        records = await _decoded(rows)
        return DocumentPage(records, None if is_last else records[-1].doc_id)

    async def counts(self, field: str, condition: Filter) -> dict[str, int]:
        """See :class:`adapters.ports.DocumentFinder`. The values of all scopes are counted, once for each filter."""
        key = (field, filter_key(condition))
        counts = self._counted.get(key)
        if counts is None:
            flags = self.segments.mask(condition).flags
            if self.segments.count <= _MAX_COUNTED:
                counts = self._count(field, flags)
            else:
                counts = await anyio.to_thread.run_sync(self._count, field, flags)
            if len(counts) < _MAX_CACHED_COUNTS:
                self._counted[key] = counts
        return dict(counts)

    async def ordered(self, condition: Filter, sort: SortKey | None, count: int) -> Listing:
        """See :class:`adapters.ports.DocumentLister`."""
        segments = self.segments
        mask = segments.mask(condition)
        first = listing.first_in_order
        found = await anyio.to_thread.run_sync(first, segments, mask.flags, sort, count, abandon_on_cancel=True)
        return Listing(Documents(found, segments), mask.count)

    async def facets(
        self, scope: Scope, sizes: Mapping[str, int], condition: Filter, within: Documents | None = None
    ) -> dict[str, Facet]:
        """See :class:`adapters.ports.DocumentLister`."""
        segments = self.segments
        flags = segments.mask(condition).flags
        if within is not None:
            positions = segments.positions_of(scope, within)
            chosen = np.zeros_like(flags)
            chosen[positions] = flags[positions]
            flags = chosen
        return await anyio.to_thread.run_sync(listing.facets, segments, flags, sizes, abandon_on_cancel=True)

    def _count(self, field: str, flags: Flags) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for segment, of_segment in zip(self.segments.segments, by_segment(flags, self.segments), strict=True):
            totals.update(segment.columns.counts(field, of_segment))
        return dict(totals)

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentSampler`."""
        return [each.record for each in self.sample_with_vectors(count)]

    def records_with_vectors(self) -> Iterator[VectorRecord]:
        """All documents. Reading one blocks."""
        return (record for _, record in self.numbered(lambda docnos: np.ones(len(docnos), np.bool_)))

    def numbered(self, chosen: Callable[[Ints], Flags]) -> Iterator[tuple[int, VectorRecord]]:
        """The documents whose numbers are chosen, with these, in their order. Reading one blocks.

        A document keeps its number until it is replaced: then it has a new one, larger than all before.
        """
        segments = self.segments
        for position in np.flatnonzero(segments.live & chosen(segments.docnos)).tolist():
            segment, row = segments.locate(position)
            yield int(segments.docnos[position]), VectorRecord(segment.record(row), segment.vectors_of(row))

    def sample_with_vectors(self, count: int) -> list[VectorRecord]:
        """Returns at most ``count`` documents, evenly spread over the order of writing."""
        living = np.flatnonzero(self.segments.live)
        if not len(living):
            return []
        chosen = living[np.linspace(0, len(living) - 1, min(count, len(living))).astype(int)]
        rows = (self.segments.locate(int(position)) for position in chosen)
        return [VectorRecord(segment.record(row), segment.vectors_of(row)) for segment, row in rows]


async def _decoded(rows: Iterable[tuple[Segment, int]]) -> list[Record]:
    """The records of some rows. Large ones are decoded in several event loop iterations: a megabyte takes 2 ms."""
    records, size_bytes = [], 0
    for segment, row in rows:
        records.append(segment.record(row))
        size_bytes += segment.size_bytes(row)
        if size_bytes > _MAX_BYTES_PER_ITERATION:
            await asyncio.sleep(0)
            size_bytes = 0
    return records


def by_segment(flags: Flags, segments: SegmentSet) -> list[Flags]:
    """Flags by position, cut into flags by row of each segment."""
    return [flags[start:end] for start, end in zip(segments.bases[:-1], segments.bases[1:], strict=True)]
