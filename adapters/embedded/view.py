"""One committed state of the embedded index, open for reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from adapters.document import Record, Scope
from adapters.embedded.columns import Flags
from adapters.embedded.component import IndexComponent
from adapters.embedded.manifest import Manifest
from adapters.embedded.segment_set import SegmentSet
from adapters.filter import Filter
from adapters.ports.replica import VectorRecord
from fusion.rank_fields import DocId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IndexView:
    """A state of the index. It never changes, whatever is written meanwhile.

    It is a :class:`adapters.ports.DocumentReader` of that state.
    """

    manifest: Manifest
    segments: SegmentSet
    opened: Mapping[str, object]

    def component(self, component: IndexComponent[T]) -> T:
        """The index of a component, as :meth:`IndexComponent.open` returned it."""
        return cast(T, self.opened[component.name])

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """See :class:`adapters.ports.DocumentFetcher`."""
        records = {}
        for id_ in ids:
            row = self.segments.find((scope.tenant, scope.environment, id_))
            if row is not None:
                records[id_] = row[0].record(row[1])
        return records

    async def find(self, condition: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentFinder`."""
        return [self.segments.record(position) for position in self.segments.passing(condition)[:limit].tolist()]

    async def counts(self, field: str, condition: Filter) -> dict[str, int]:
        """See :class:`adapters.ports.DocumentFinder`."""
        flags = self.segments.mask(condition).flags
        totals: Counter[str] = Counter()
        for segment, of_segment in zip(self.segments.segments, by_segment(flags, self.segments), strict=True):
            totals.update(segment.columns.counts(field, of_segment))
        return dict(totals)

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentSampler`."""
        return [each.record for each in self.sample_with_vectors(count)]

    def sample_with_vectors(self, count: int) -> list[VectorRecord]:
        """At most ``count`` documents, evenly spread over the order of writing."""
        living = np.flatnonzero(self.segments.live)
        if not len(living):
            return []
        chosen = living[np.linspace(0, len(living) - 1, min(count, len(living))).astype(int)]
        rows = (self.segments.locate(int(position)) for position in chosen)
        return [VectorRecord(segment.record(row), segment.vectors[row]) for segment, row in rows]


def by_segment(flags: Flags, segments: SegmentSet) -> list[Flags]:
    """Flags by position, cut into flags by row of each segment."""
    return [flags[start:end] for start, end in zip(segments.bases[:-1], segments.bases[1:], strict=True)]
