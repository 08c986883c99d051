"""One unchanging view of all documents: which rows live, where each stands, what a filter lets through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.document import Record
from adapters.embedded.columns import Flags
from adapters.embedded.segment import Segment
from adapters.filter import Filter
from fusion import Ranking

_MASKS = 256
"""How many filters' masks a view keeps: at 100,000 documents 25 MB."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Which positions pass. ``count`` of them do; ``everything`` spares the search a test per document."""

    flags: Flags
    count: int
    everything: bool


class Catalog:
    """Segments in a row: a *position* counts through all of them, from 0, the dead included."""

    def __init__(self, segments: Sequence[Segment], dead: Flags) -> None:
        self.segments = tuple(segments)
        self.live: Flags = ~dead
        self.bases = np.cumsum([0, *(len(segment) for segment in segments)])
        self._starts: list[int] = self.bases.tolist()
        self.docnos: npt.NDArray[np.int64] = np.concatenate(
            [np.zeros(0, np.int64), *(segment.docnos for segment in segments)]
        )
        self.count = int(self.live.sum())
        self._ids = list(chain.from_iterable(segment.ids for segment in segments))
        self._facts = {
            base + row: facts
            for base, segment in zip(self._starts, segments, strict=False)
            for row, facts in segment.facts.items()
        }
        self._masks: dict[bytes, Mask] = {}

    def __len__(self) -> int:
        return len(self.live)

    def scattered(self) -> bool:
        """Whether a tenth or more of all rows is dead, or outside the largest segment."""
        largest = max((len(segment) for segment in self.segments), default=0)
        return 10 * min(largest, self.count) < 9 * len(self)

    def ranking(self, source: str, positions: Sequence[int], scores: Sequence[float], coverage: float = 0.0) -> Ranking:
        """The documents at these positions, best first, as a source's answer."""
        ids, facts = self._ids, self._facts
        known = {ids[position]: facts[position] for position in positions if position in facts} if facts else {}
        return Ranking(source, tuple([ids[position] for position in positions]), tuple(scores), coverage, known)

    def locate(self, position: int) -> tuple[Segment, int]:
        """The segment and the row there."""
        index = int(self.bases.searchsorted(position, side="right")) - 1
        return self.segments[index], position - int(self.bases[index])

    def record(self, position: int) -> Record:
        """The record at a position."""
        segment, row = self.locate(position)
        return segment.record(row)

    def position(self, key: tuple[str, str, str]) -> int | None:
        """Where the living document of this key stands."""
        place = self._find(key)
        return None if place is None else self._starts[place[0]] + place[1]

    def find(self, key: tuple[str, str, str]) -> tuple[Segment, int] | None:
        """The segment and the row of the living document of this key."""
        place = self._find(key)
        return None if place is None else (self.segments[place[0]], place[1])

    def _find(self, key: tuple[str, str, str]) -> tuple[int, int] | None:
        """The newest segment that holds the key alive, and the row there."""
        for index in range(len(self.segments) - 1, -1, -1):
            row = self.segments[index].row(key)
            if row is not None and self.live[self._starts[index] + row]:
                return index, row
        return None

    def positions(self, docnos: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where these document numbers stand; each must be held here."""
        return self.docnos.searchsorted(docnos)

    def passing(self, wanted: Filter) -> npt.NDArray[np.int64]:
        """The living positions that pass a filter in normal form, which nobody will ask again."""
        return np.flatnonzero(self._flags(wanted))

    def mask(self, wanted: Filter) -> Mask:
        """The living positions that pass a filter in normal form."""
        key = msgspec.json.encode(wanted)  # and not the filter: in Python 1.0 == True
        if (mask := self._masks.get(key)) is None:
            flags = self._flags(wanted)
            count = int(flags.sum())
            mask = Mask(flags, count, everything=count == len(flags))
            if len(self._masks) >= _MASKS:
                self._masks.pop(next(iter(self._masks)))
            self._masks[key] = mask
        return mask

    def _flags(self, wanted: Filter) -> Flags:
        parts = [segment.columns.flags(wanted) for segment in self.segments]
        flags: Flags = self.live & np.concatenate([np.zeros(0, np.bool_), *parts])
        return flags
