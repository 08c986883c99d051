"""The protocol of a write log."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from adapters.ports.replica import Key
from orchestrator.indexing.log.quarantine import Quarantine
from orchestrator.indexing.log.write import Write


class WriteLog(Protocol):
    """Durable, ordered writes, and for each replica the sequence number up to which it has applied them.

    All methods block.

    :ivar max_bytes: maximum size of unapplied writes.
    :ivar quarantine: the documents that replicas refused.
    """

    max_bytes: int
    quarantine: Quarantine

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
        """The files of the writes that were set aside, and every other file that is damaged. Reads them all."""
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

    def version_offset(self, replica: str) -> int:
        """What is added to the sequence numbers of writes for their versions in a replica; 0 unless recorded."""
        ...

    def record_version_offset(self, replica: str, offset: int) -> None:
        """See :meth:`version_offset`."""
        ...

    def applying(self, replica: str) -> AbstractContextManager[bool]:
        """Whether this process may apply writes to a replica now: one process at a time may."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """One process at a time appends or truncates; waits until it is this one."""
        ...

    def is_writable(self) -> bool:
        """Whether this process may append and apply. Others, on a read-only disk, follow what these do."""
        ...

    def size_bytes(self) -> int:
        """Of the writes that are unapplied or wait for truncation."""
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


def store_name(replica: str) -> str:
    """The first word of the name of a replica, without the address, which is for operators."""
    return replica.partition(" ")[0]
