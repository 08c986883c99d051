"""The documents of one write that a replica did not accept when they were written alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from time import monotonic, time_ns

from adapters import Document, Record
from adapters.ports.replica import Key, VectorRecord

MIN_INTERVAL_S = 5.0
"""Failures within this time count once: a shard fails for a while when it moves to another node."""


class FailedAlone:
    """How often each document has failed alone, and which documents count as refused from then on.

    :param sequence: of the write.
    :ivar refused: the refused documents, and the reasons.
    """

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.refused: dict[Key, str] = {}
        self._failures: dict[Key, tuple[int, float]] = {}
        """The number of failures, and when the newest one was counted."""

    def count(self, key: Key) -> int:
        """Count a failure of a document. Returns the number of its failures."""
        number, counted_at = self._failures.get(key, (0, -inf))
        now = monotonic()
        if now - counted_at < MIN_INTERVAL_S:
            return number
        self._failures[key] = number + 1, now
        return number + 1


def bisected(
    upserts: Sequence[VectorRecord], deletes: Sequence[Key]
) -> list[tuple[Sequence[VectorRecord], Sequence[Key]]]:
    """A batch of at least two documents in two parts, to find one that fails alone."""
    if len(upserts) == len(deletes) == 1:
        return [(upserts, ()), ((), deletes)]
    middle, middle_delete = len(upserts) // 2, len(deletes) // 2
    return [(upserts[:middle], deletes[:middle_delete]), (upserts[middle:], deletes[middle_delete:])]


def probe_record() -> Record:
    """A small document of no caller's tenant.

    Its id is new, because a replica ignores a document that is not newer than its deletion by an earlier probe.
    """
    return Record("", "", Document(id=str(time_ns()), text="probe"), entities=())
