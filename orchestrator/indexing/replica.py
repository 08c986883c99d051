"""The application of the write log to one replica: in order, and by one process at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import anyio.to_thread

from adapters import AdapterError, DocumentFetcher, Rejected, Scope, TimedOut, VectorRecord
from adapters.document import hidden_keys
from adapters.ports.replica import IndexAdmin, Key, Replica
from adapters.server import batches
from fusion.rank_fields import DocId
from orchestrator.indexing.log.port import DamagedWrite, Write, WriteLog

_log = logging.getLogger(__name__)

_LOCK_RETRY_S = 0.02
"""Interval in which the lock of another process is tried: nothing reports that a file lock is free."""
_MAX_FETCHED = 256
"""Documents that are read at once to decide what a write may replace: each may have a megabyte."""
_MAX_ISOLATED_REJECTIONS = 8
"""If so many single documents are refused and none is accepted, the replica is at fault and no more are tried."""


UNDECIDED = "waits for the replica that documents are read from to decide which documents the writer may replace"


class AdministeredReplica(Replica, IndexAdmin, Protocol):
    """A replica whose index can be created."""


class ReplicaApplier:
    """Applies the write log to one replica.

    :param slot_timeout_s: how long a write waits while another one is applying to the same replica.
    :param documents: for the replica that documents are read from: its documents. They decide which of them a write
        must not touch, when all earlier writes are applied to them. The other replicas wait for that decision, so that
        all replicas contain the same documents.
    """

    def __init__(
        self,
        log: WriteLog,
        name: str,
        replica: AdministeredReplica,
        slot_timeout_s: float,
        documents: DocumentFetcher | None,
    ) -> None:
        self.name = name
        self._documents = documents
        self._log = log
        self._replica = replica
        self._slot_timeout_s = slot_timeout_s
        self._lock = asyncio.Lock()
        self._is_created = False
        self._batch_size: int | None = None
        """Documents a call; smaller after a time-out. ``None``: all of a write."""

    async def catch_up(self) -> str | None:
        """Apply what is unapplied now; the reason if the replica still lacks some of it, or ``None``."""
        try:
            unapplied = await anyio.to_thread.run_sync(self._log.unapplied, self.name)
            if not unapplied:
                return None
            async with self._with_write_slot() as has_slot:
                is_decided = not has_slot or await self._apply_unapplied()
            if not await anyio.to_thread.run_sync(self._log.is_applied, self.name, unapplied[-1]):
                still = f"is still applying earlier writes after {self._slot_timeout_s:g} s"
                return still if is_decided else UNDECIDED
        except AdapterError as error:
            _log.warning("%s does not have the newest writes: %s", self.name, error.for_operators)
            self._is_created = False  # if the server lost the index meanwhile, it is created again
            return str(error)
        except Exception as error:
            # A defect in one adapter, or a full disk under its cursor, must not stop the other replicas.
            _log.exception("applying writes to %s failed", self.name)
            return f"internal error: {type(error).__name__}"
        return None

    @asynccontextmanager
    async def _with_write_slot(self) -> AsyncIterator[bool]:
        """Whether this process got the right to apply in time. Inside, no other task or process applies."""
        timeout = asyncio.timeout(self._slot_timeout_s)
        try:
            async with timeout, self._lock:
                while True:
                    with self._log.applying(self.name) as has_lock:
                        if has_lock:
                            timeout.reschedule(None)
                            yield True
                            return
                    await asyncio.sleep(_LOCK_RETRY_S)
        except TimeoutError:
            if not timeout.expired():
                raise
        yield False

    async def _apply_unapplied(self) -> bool:
        """Whether everything was applied; it stops at a write whose hidden documents are not decided yet."""
        unapplied = await anyio.to_thread.run_sync(self._log.unapplied, self.name)
        if unapplied:
            self._log.record_missed_history(self.name)
        for sequence in unapplied:
            if not self._is_created:  # the server may have been away when the service started
                await self._replica.create()
                self._is_created = True
            try:
                write = await anyio.to_thread.run_sync(self._log.read, sequence)
                hidden = await self._hidden(sequence, write)
            except DamagedWrite as error:
                _log.error("%s cannot get a write, which is set aside: %s", self.name, error.for_operators)
                await anyio.to_thread.run_sync(self._log.set_aside, sequence)
                await anyio.to_thread.run_sync(self._log.mark_applied, self.name, sequence)
                continue
            if hidden is None:
                return False
            deletes = [key for key in write.deletes if key not in hidden]
            upserts = write.upserts(hidden)
            rejections = await self._apply(sequence, upserts, deletes) if upserts or deletes else {}
            for reason in rejections.values():
                _log.error("%s refuses a document, it is not retried: %s", self.name, reason)
            if rejections:
                await anyio.to_thread.run_sync(self._log.record_rejections, self.name, sequence, rejections)
            await anyio.to_thread.run_sync(self._log.mark_applied, self.name, sequence)
        return True

    async def _hidden(self, sequence: int, write: Write) -> frozenset[Key] | None:
        """The documents that a write must not touch. Recorded before anything is applied: the write may hide them."""
        if not write.is_conditional:
            return frozenset()
        hidden = await anyio.to_thread.run_sync(self._log.hidden, sequence)
        if hidden is None and self._documents is not None:
            ids_by_scope: dict[Scope, list[DocId]] = {}
            for tenant, environment, id_ in write.keys:
                ids_by_scope.setdefault(Scope(tenant, environment), []).append(id_)
            hidden = frozenset[Key]()
            for scope, ids in ids_by_scope.items():
                for some_ids in batches(ids, _MAX_FETCHED):
                    existing = await self._documents.fetch(scope, some_ids)
                    hidden |= hidden_keys(existing.values(), write.clearance)
            await anyio.to_thread.run_sync(self._log.record_hidden, sequence, hidden)
        return hidden

    async def _apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> dict[Key, str]:
        """Apply one write in batches that the replica can process in time; the documents that it refuses, and why.

        Refused documents are isolated by bisection, so that they do not stop the others.

        :raises Rejected: if no document at all is accepted: then the documents are not at fault.
        :raises TimedOut: the next attempt uses batches of half the size.
        """
        count = max(len(upserts), len(deletes))
        size = min(self._batch_size or count, count)
        batches = [slice(start, start + size) for start in range(0, count, size)]
        stack = [(upserts[batch], deletes[batch]) for batch in reversed(batches)]
        rejections: dict[Key, str] = {}
        any_accepted = False
        while stack:
            some_upserts, some_deletes = stack.pop()
            try:
                await self._replica.apply(sequence, some_upserts, some_deletes)
                any_accepted = True
            except TimedOut:
                self._batch_size = max(1, size // 2)
                raise
            except Rejected as error:
                if len(some_upserts) + len(some_deletes) > 1:
                    stack += reversed(_bisect(some_upserts, some_deletes))
                    continue
                keys = (*(each.record.key for each in some_upserts), *some_deletes)
                rejections |= {key: str(error) for key in keys}
                if not any_accepted and len(rejections) >= (_MAX_ISOLATED_REJECTIONS if stack else 2):
                    raise
        self._batch_size = None if size == count else 2 * size
        return rejections


def _bisect(
    upserts: Sequence[VectorRecord], deletes: Sequence[Key]
) -> list[tuple[Sequence[VectorRecord], Sequence[Key]]]:
    """A batch of at least two documents as two smaller batches."""
    if len(upserts) == len(deletes) == 1:
        return [(upserts, ()), ((), deletes)]
    middle, middle_delete = len(upserts) // 2, len(deletes) // 2
    return [(upserts[:middle], deletes[:middle_delete]), (upserts[middle:], deletes[middle_delete:])]
