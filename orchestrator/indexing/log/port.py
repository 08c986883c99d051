"""The protocol of a write log, and one write in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
import numpy as np

from adapters import AdapterError, Record, Sensitivity, VectorRecord
from adapters.document import HIGHEST_CLEARANCE
from adapters.ports.replica import Key


class Write(msgspec.Struct, frozen=True):
    """One write as it is stored: records, their vectors one after the other, and the keys of deleted documents.

    :param clearance: of the writer. Documents above it are neither replaced nor deleted.
    """

    records: list[Record]
    vectors: bytes
    deletes: list[Key]
    clearance: Sensitivity = HIGHEST_CLEARANCE

    @classmethod
    def of(
        cls, upserts: Sequence[VectorRecord], deletes: Iterable[Key], clearance: Sensitivity = HIGHEST_CLEARANCE
    ) -> Write:
        """Of several records with one key the last one counts, and a record counts more than a delete of its key."""
        newest = {each.record.key: each for each in upserts}
        vectors = b"".join(np.ascontiguousarray(each.vector, np.float32).tobytes() for each in newest.values())
        return cls([each.record for each in newest.values()], vectors, sorted(set(deletes) - set(newest)), clearance)

    @property
    def is_conditional(self) -> bool:
        """Whether there may be documents that it must not touch."""
        return self.clearance != HIGHEST_CLEARANCE

    @property
    def keys(self) -> list[Key]:
        """Of every document that the write replaces or deletes."""
        return [*(record.key for record in self.records), *self.deletes]

    def upserts(self, hidden: Collection[Key] = ()) -> list[VectorRecord]:
        """The records with their vectors, without those that would replace a hidden document."""
        matrix = np.frombuffer(self.vectors, np.float32).reshape(len(self.records), -1) if self.records else ()
        return [
            VectorRecord(record, vector)
            for record, vector in zip(self.records, matrix, strict=True)
            if record.key not in hidden
        ]


class DamagedWrite(AdapterError):
    """A write in the log is not what was appended: its disk has changed it."""


class WriteLog(Protocol):
    """Durable, ordered writes, and for each replica the sequence number up to which it has applied them.

    All methods block.
    """

    def append(self, write: Write, replicas: Iterable[str]) -> int:
        """Make a write durable; its sequence number, larger than all before.

        :raises Unavailable: if too much is unapplied already, or the disk is full; then nothing is stored.
        """
        ...

    def read(self, sequence: int) -> Write:
        """One write.

        :raises DamagedWrite: if it is not what was appended.
        :raises AdapterError: if it cannot be read.
        """
        ...

    def set_aside(self, sequence: int) -> None:
        """Take a damaged write out of the log, so that those after it are applied. See :meth:`damaged`."""
        ...

    def damaged(self) -> list[str]:
        """The files of the writes that were set aside."""
        ...

    def unapplied(self, replica: str) -> list[int]:
        """The sequence numbers that a replica has not applied, in order."""
        ...

    def is_applied(self, replica: str, sequence: int) -> bool:
        """Whether a replica has applied a write."""
        ...

    def mark_applied(self, replica: str, sequence: int) -> None:
        """Record that a replica has applied everything up to and including ``sequence``."""
        ...

    def truncate(self, replicas: Iterable[str]) -> None:
        """Remove the writes that all of these replicas have applied."""
        ...

    def record_rejections(self, replica: str, sequence: int, rejections: Mapping[Key, str]) -> None:
        """Record, for a day, which documents of a write a replica refused, and why."""
        ...

    def rejections(self, sequence: int) -> dict[Key, dict[str, str]]:
        """The documents of a write that replicas refused, and why: by document, then by replica."""
        ...

    def record_hidden(self, sequence: int, hidden: Collection[Key]) -> None:
        """Record, for a day, which documents a write must not touch, before it is applied to any replica."""
        ...

    def hidden(self, sequence: int) -> frozenset[Key] | None:
        """See :meth:`record_hidden`; ``None`` if it is not decided yet.

        :raises DamagedWrite: if the record is not what was written.
        """
        ...

    def record_missed_history(self, replica: str) -> None:
        """Record that a replica misses writes that were truncated before it was added, if so."""
        ...

    def has_missed_history(self, replica: str) -> bool:
        """Whether :meth:`record_missed_history` found any."""
        ...

    def applying(self, replica: str) -> AbstractContextManager[bool]:
        """Whether this process may apply writes to a replica now: one process at a time may."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """One process at a time appends or truncates; waits until it is this one."""
        ...

    def is_empty(self) -> bool:
        """Whether no write is unapplied or waits for truncation."""
        ...

    def generation(self) -> int:
        """The newest sequence number that any replica has applied; 0 if there is none."""
        ...

    def applied_total(self) -> int:
        """Grows whenever any replica applies anything."""
        ...
