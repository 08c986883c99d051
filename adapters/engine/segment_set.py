"""One immutable view of all documents: which rows are alive, their numbers, and which of them pass a filter."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from adapters.engine.columns import Flags
from adapters.engine.segment import Segment, no_fields
from adapters.model.document import Record, Scope
from adapters.model.filter import And, Filter
from adapters.model.filter_hash import filter_key
from fusion.columns import Documents
from fusion.rank_fields import Ints, RankFields
from fusion.values import DocId

_MASKS = 256
"""Number of cached masks: at 100,000 documents 25 MB."""
_PARTS = 8
"""Number of cached conditions; a mask combines several."""


@dataclass(frozen=True, slots=True)
class Mask:
    """The positions that pass a filter, and their number. If ``everything`` passes, a search need not test each."""

    flags: Flags
    count: int
    everything: bool


class SegmentSet:
    """Segments in a row. A *position* counts through all of them, from 0, deleted rows included.

    It is a :class:`fusion.DocumentTable` whose numbers are positions.
    """

    def __init__(self, segments: Sequence[Segment], dead: Flags) -> None:
        self.segments = tuple(segments)
        self.live: Flags = ~dead
        self.bases = np.cumsum([0, *(len(segment) for segment in segments)])
        self._starts: list[int] = self.bases.tolist()
        self.docnos: npt.NDArray[np.int64] = np.concatenate(
            [np.zeros(0, np.int64), *(segment.docnos for segment in segments)]
        )
        self.count = int(self.live.sum())
        self._first_docno = _first_if_consecutive(self.docnos)
        self._fields = _concatenated_fields(self.segments)
        self._masks: dict[bytes, Mask] = {}
        self._parts: LRUCache[bytes, Flags] = LRUCache(_PARTS)

    def __len__(self) -> int:
        return len(self.live)

    def is_scattered(self) -> bool:
        """Whether a tenth or more of all rows is dead, or outside the largest segment."""
        largest = max((len(segment) for segment in self.segments), default=0)
        return 10 * min(largest, self.count) < 9 * len(self)

    def ids(self, docs: Ints) -> list[DocId]:
        """See :class:`fusion.DocumentTable`."""
        if len(self.segments) == 1:
            return self.segments[0].ids(docs.tolist())
        return [self.id(position) for position in docs.tolist()]

    def id(self, position: int) -> DocId:
        """The id of the document at a position."""
        segment, row = self.locate(position)
        return segment.id(row)

    def fields(self, docs: Ints) -> RankFields | None:
        """See :class:`fusion.DocumentTable`."""
        return None if self._fields is None else self._fields.take(docs)

    def locate(self, position: int) -> tuple[Segment, int]:
        """The segment and the row there."""
        index = bisect_right(self._starts, position) - 1
        return self.segments[index], position - self._starts[index]

    def record(self, position: int) -> Record:
        """The record at a position."""
        segment, row = self.locate(position)
        return segment.record(row)

    def position(self, key: tuple[str, str, str]) -> int | None:
        """The position of the living document of this key."""
        found = self._find(key)
        return None if found is None else self._starts[found[0]] + found[1]

    def positions_of(self, scope: Scope, documents: Documents) -> Ints:
        """The positions of the living documents among some of a scope, in their order."""
        if documents.table is self:  # then they need not be looked up
            return documents.docs
        found = (self.position((scope.tenant, scope.environment, id_)) for id_ in documents.ids)
        return np.array([position for position in found if position is not None], np.int64)

    def find(self, key: tuple[str, str, str]) -> tuple[Segment, int] | None:
        """The segment and the row of the living document of this key."""
        found = self._find(key)
        return None if found is None else (self.segments[found[0]], found[1])

    def chunks(self, chunks: Sequence[tuple[DocId, int]]) -> list[list[int]]:
        """The living positions of the chunks with these parents and indexes."""
        positions: list[list[int]] = [[] for _ in chunks]
        for base, segment in zip(self._starts, self.segments, strict=False):
            if segment.rank_fields is not None:
                for found, rows in zip(positions, segment.chunk_rows(chunks), strict=True):
                    found.extend(base + row for row in rows if self.live[base + row])
        return positions

    def _find(self, key: tuple[str, str, str]) -> tuple[int, int] | None:
        """The newest segment with a living document of this key, and its row."""
        for index in range(len(self.segments) - 1, -1, -1):
            row = self.segments[index].row(key)
            if row is not None and self.live[self._starts[index] + row]:
                return index, row
        return None

    def positions(self, docnos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The positions of these document numbers, each of which must exist."""
        if self._first_docno is not None:
            return docnos - self._first_docno
        return self.docnos.searchsorted(docnos)

    @cached_property
    def by_id(self) -> npt.NDArray[np.int64]:
        """The living positions in the order of their ids. Blocks: a million takes seconds."""
        positions = np.flatnonzero(self.live)
        ids = self.ids(positions)
        return positions[sorted(range(len(ids)), key=ids.__getitem__)]

    def passing(self, condition: Filter) -> npt.NDArray[np.int64]:
        """The living positions that pass a filter in normal form, without caching it."""
        return np.flatnonzero(self._flags(condition))

    def mask(self, condition: Filter) -> Mask:
        """The living positions that pass a filter in normal form, cached."""
        key = filter_key(condition)
        if (mask := self._masks.get(key)) is None:
            flags = self._flags(condition)
            count = int(flags.sum())
            mask = Mask(flags, count, everything=count == len(flags))
            if len(self._masks) >= _MASKS:
                self._masks.pop(next(iter(self._masks)))
            self._masks[key] = mask
        return mask

    def _flags(self, condition: Filter) -> Flags:
        """Returns a flag for each position. Recent conditions are cached: the collections of a request share some."""
        flags = self.live.copy()
        for part in condition.filters if isinstance(condition, And) else (condition,):
            flags &= self._flags_of_part(part)
        return flags

    def _flags_of_part(self, condition: Filter) -> Flags:
        key = filter_key(condition)
        if (flags := self._parts.get(key)) is None:
            by_segment = [segment.columns.flags(condition) for segment in self.segments]
            flags = self._parts[key] = np.concatenate([np.zeros(0, np.bool_), *by_segment])
        return flags


def _first_if_consecutive(docnos: npt.NDArray[np.int64]) -> int | None:
    """The first document number if there are no gaps, as in an index that was written once; otherwise ``None``."""
    if len(docnos) and docnos[-1] - docnos[0] == len(docnos) - 1:
        return int(docnos[0])
    return None


def _concatenated_fields(segments: Sequence[Segment]) -> RankFields | None:
    """The rank fields of all rows; ``None`` if no row has any."""
    if all(segment.rank_fields is None for segment in segments):
        return None
    numbers: dict[DocId, int] = {}
    by_segment = [segment.rank_fields or no_fields(len(segment)) for segment in segments]
    parents = [
        np.array([*(numbers.setdefault(parent, len(numbers)) for parent in each.parents), -1], np.int64)[each.parent]
        for each in by_segment
    ]
    return RankFields(
        np.concatenate(parents),
        np.concatenate([each.chunk for each in by_segment]),
        np.concatenate([each.created_at for each in by_segment]),
        np.concatenate([each.importance for each in by_segment]),
        tuple(numbers),
    )
