"""Applies the write log to one replica, in order and by one process at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import anyio.to_thread
import msgspec

from adapters import AdapterError, ExecutionFailed, Rejected, Scope, TimedOut, Unavailable, VersionConflict
from adapters.ports import VectorRecord
from adapters.ports.documents import ProtectionReader
from adapters.ports.replica import IndexAdmin, Key, Replica
from fusion.values import DocId
from orchestrator.indexing.failed_alone import FailedAlone, bisected, probe_record
from orchestrator.indexing.log.quarantine import Quarantined
from orchestrator.indexing.log.write import DamagedWrite, Write
from orchestrator.indexing.log.write_log import WriteLog

_log = logging.getLogger(__name__)

_LOCK_RETRY_S = 0.02
"""Seconds between two attempts to get the lock: nothing reports that a file lock is free."""
_MAX_ATTEMPTS = 3
"""Attempts to apply a document that fails alone; then it is refused, if the replica accepts a small one."""

UNDECIDED = "waits for the replica that documents are read from to decide which documents the writer may replace"


class AdministeredReplica(Replica, IndexAdmin, Protocol):
    """A replica whose index can be created."""


class ReplicaApplier:
    """Applies the write log to one replica.

    :param slot_timeout_s: how long a write waits while another one is applying to the same replica.
    :param documents: the documents of this replica if documents are read from it, else ``None``. They decide which
        documents a write must not change, when all earlier writes are applied. The other replicas wait for that
        decision, so that all contain the same documents.
    """

    def __init__(
        self,
        log: WriteLog,
        name: str,
        replica: AdministeredReplica,
        slot_timeout_s: float,
        documents: ProtectionReader | None,
    ) -> None:
        self.name = name
        self._documents = documents
        self._log = log
        self._replica = replica
        self._slot_timeout_s = slot_timeout_s
        self._lock = asyncio.Lock()
        self._is_created = False
        self._batch_size: int | None = None
        """Documents per call; smaller after a time-out. ``None``: all of a write."""
        self._failed_alone = FailedAlone(0)
        """Failures of the unapplied write."""

    async def catch_up(self) -> str | None:
        """Apply the unapplied writes. Returns why the replica still lacks some, or ``None``."""
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
        """Wait for the lock to apply, and yield whether it was free in time. Nothing else applies inside."""
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
        """Apply the writes up to one whose hidden documents are not decided. Returns whether all were applied."""
        unapplied = await anyio.to_thread.run_sync(self._log.unapplied, self.name)
        if unapplied:
            self._log.record_missed_history(self.name)
        for sequence in unapplied:
            if not self._is_created:  # the server may have been unavailable at the start
                await self._replica.create()
                self._is_created = True
            try:
                write = await anyio.to_thread.run_sync(self._log.read, sequence)
                hidden = await self._hidden(sequence, write)
            except DamagedWrite as error:
                _log.error("a damaged write is not applied to %s, and is set aside: %s", self.name, error.for_operators)
                await anyio.to_thread.run_sync(self._log.set_aside, sequence)
                await anyio.to_thread.run_sync(self._log.mark_applied, self.name, sequence)
                continue
            if hidden is None:
                return False
            upserts, deletes = write.upserts(hidden), [key for key in write.deletes if key not in hidden]
            rejections = await self._apply(sequence, upserts, deletes) if upserts or deletes else {}
            accepted = [key for key in (*(each.record.key for each in upserts), *deletes) if key not in rejections]
            await anyio.to_thread.run_sync(self._log.quarantine.release, self.name, accepted)
            if rejections:
                refused = self._refused(sequence, upserts, rejections)
                await anyio.to_thread.run_sync(self._log.quarantine.add, refused)
            await anyio.to_thread.run_sync(self._log.mark_applied, self.name, sequence)
        return True

    def _refused(
        self, sequence: int, upserts: Sequence[VectorRecord], rejections: Mapping[Key, str]
    ) -> list[Quarantined]:
        """The refused documents as entries of the quarantine."""
        records = {each.record.key: each for each in upserts}
        refused = []
        for key, reason in rejections.items():
            _log.error("%s refuses a document, which is quarantined: %s", self.name, reason)
            write = Write.of([records[key]], []) if key in records else Write.of([], [key])
            refused.append(Quarantined(self.name, sequence, reason, write))
        return refused

    async def retry_refused(self) -> int:
        """Apply the quarantined documents again; the refused ones stay. Returns how many were accepted.

        :raises Unavailable: if writes are unapplied: a quarantined document may be older than one of them.
        :raises AdapterError: if the replica is unavailable.
        """
        if (reason := await self.catch_up()) is not None:
            raise Unavailable(f"{self.name} does not have every write: {reason}")
        accepted = 0
        async with self._with_write_slot() as has_slot:
            entries = await anyio.to_thread.run_sync(self._log.quarantine.entries) if has_slot else []
            for entry in entries:
                if entry.replica != self.name:
                    continue
                upserts = entry.write.upserts()
                try:
                    await self._apply_once(entry.sequence, upserts, entry.write.deletes)
                except (Rejected, ExecutionFailed, TimedOut) as error:
                    if not isinstance(error, Rejected) and not await self._accepts_probe(entry.sequence, upserts):
                        raise
                    still_refused = msgspec.structs.replace(entry, reason=str(error))
                    await anyio.to_thread.run_sync(self._log.quarantine.add, [still_refused])
                else:
                    await anyio.to_thread.run_sync(self._log.quarantine.release, self.name, [entry.key])
                    accepted += 1
        return accepted

    async def fill(self, batches: AsyncIterable[Sequence[VectorRecord]], advance: Callable[[int], None]) -> int:
        """Write documents that other replicas have; newer writes wait. Returns how many were accepted.

        :raises AdapterError: if the replica is unavailable, or lacks writes.
        """
        if (reason := await self.catch_up()) is not None:
            raise Unavailable(f"{self.name} does not have every write: {reason}")
        async with self._with_write_slot() as has_slot:
            if not has_slot:
                raise Unavailable(f"{self.name} is still applying writes")
            await self._replica.create()
            written, sequence = 0, await anyio.to_thread.run_sync(self._log.applied, self.name)
            async for batch in batches:
                keys = {each.record.key for each in batch}
                refused = await self._apply(sequence, batch, ())
                rejections = {key: reason for key, reason in refused.items() if key in keys}
                await anyio.to_thread.run_sync(self._log.quarantine.add, self._refused(sequence, batch, rejections))
                written += len(batch) - len(rejections)
                advance(len(batch))
            await anyio.to_thread.run_sync(self._log.forget_missed_history, self.name)
        return written

    async def _hidden(self, sequence: int, write: Write) -> frozenset[Key] | None:
        """The documents that a write must not change, recorded before it is applied; ``None`` if not decided."""
        if not write.is_conditional:
            return frozenset()
        hidden = await anyio.to_thread.run_sync(self._log.hidden, sequence)
        if hidden is None and self._documents is not None:
            ids_by_scope: dict[Scope, list[DocId]] = {}
            for tenant, environment, id_ in write.keys:
                ids_by_scope.setdefault(Scope(tenant, environment), []).append(id_)
            # A document that this replica refused is not in it, and stays protected.
            hidden = await anyio.to_thread.run_sync(self._log.quarantine.hidden, self.name, write.keys, write.viewer)
            for scope, ids in ids_by_scope.items():
                existing = await self._documents.protections(scope, ids)
                hidden |= {
                    (scope.tenant, scope.environment, id_)
                    for id_, protection in existing.items()
                    if not write.viewer.sees(protection)
                }
            await anyio.to_thread.run_sync(self._log.record_hidden, sequence, hidden)
        return hidden

    async def _apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> dict[Key, str]:
        """Apply one write in batches that the replica can process in time. Returns the refused documents, and why.

        Refused documents are isolated by bisection, so that they do not stop the others. A document that alone times
        out, or fails for an unknown reason, in several attempts counts as refused.

        :raises Rejected: if the replica refuses everything, the probe included: then the documents are not at fault.
        :raises TimedOut: the next attempt uses batches of half the size.
        :raises ExecutionFailed: if documents have failed alone; they are refused in the last of several attempts.
        """
        if self._failed_alone.sequence != sequence:
            self._failed_alone = FailedAlone(sequence)
        refused = self._failed_alone.refused  # in earlier attempts, too
        upserts = [each for each in upserts if each.record.key not in refused]
        deletes = [key for key in deletes if key not in refused]
        if not (count := max(len(upserts), len(deletes))):
            return refused
        size = min(self._batch_size or count, count)
        batches = [slice(start, start + size) for start in range(0, count, size)]
        stack = [(upserts[batch], deletes[batch]) for batch in reversed(batches)]
        accepts_others = False
        unexplained: AdapterError | None = None
        while stack:
            some_upserts, some_deletes = stack.pop()
            keys = (*(each.record.key for each in some_upserts), *some_deletes)
            try:
                await self._apply_once(sequence, some_upserts, some_deletes)
                accepts_others = True
                continue
            except TimedOut as error:
                if size > 1:
                    self._batch_size = size // 2
                    raise
                failure: AdapterError = error
            except (Rejected, ExecutionFailed) as error:
                failure = error
            if len(keys) > 1:
                stack += reversed(bisected(some_upserts, some_deletes))
                continue
            if not await self._is_refused(keys[0], sequence, some_upserts, failure, accepts_others):
                unexplained = failure
            accepts_others = True
        if unexplained:
            raise unexplained
        self._batch_size = None if size == count else 2 * size
        return refused

    async def _is_refused(
        self, key: Key, sequence: int, document: Sequence[VectorRecord], failure: AdapterError, accepts_others: bool
    ) -> bool:
        """Whether a document that has failed alone counts as refused from now on, or is tried again.

        :param document: empty if a deletion has failed.
        :param accepts_others: whether the replica has just accepted others; otherwise a probe shows it.
        :raises AdapterError: the failure, if the others of the write would fail as well.
        """
        is_final = isinstance(failure, Rejected) or self._failed_alone.count(key) >= _MAX_ATTEMPTS
        if isinstance(failure, TimedOut):
            if not is_final:
                raise failure  # the others would time out, too
            accepts_others = False  # not known any more
        if not accepts_others and not await self._accepts_probe(sequence, document):
            raise failure
        if is_final:
            attempts = "" if isinstance(failure, Rejected) else f", in {_MAX_ATTEMPTS} attempts"
            self._failed_alone.refused[key] = f"{failure}{attempts}"
        return is_final

    async def _apply_once(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        """Apply, with a version above that of every document which another log has written.

        The version of a document in the replica is the sequence number of this log plus an offset. The offset is 0
        unless the replica has documents of another data folder, whose clock was ahead, with newer versions.
        """
        offset = await anyio.to_thread.run_sync(self._log.version_offset, self.name)
        try:
            await self._replica.apply(sequence + offset, upserts, deletes)
        except VersionConflict as error:
            # A crash before the cursor was moved leaves documents with newer versions: those of this log.
            own = {number + offset for number in await anyio.to_thread.run_sync(self._log.unapplied, self.name)}
            foreign = error.versions - own
            if not foreign:
                return
            offset = max(foreign) + 1 - sequence
            _log.warning("%s has documents of another log, so %d is added to the versions", self.name, offset)
            await anyio.to_thread.run_sync(self._log.record_version_offset, self.name, offset)
            await self._replica.apply(sequence + offset, upserts, deletes)

    async def _accepts_probe(self, sequence: int, refused: Sequence[VectorRecord]) -> bool:
        """Whether the replica accepts a small document with the vector of the refused one, and its deletion.

        :param refused: empty if a deletion was refused.
        """
        record = probe_record()
        try:
            # An older version, because a replica ignores a deletion that is not newer than the document.
            await self._apply_once(sequence - 1, [VectorRecord(record, each.vectors) for each in refused], ())
            await self._apply_once(sequence, (), [record.key])
        except (Rejected, ExecutionFailed, TimedOut):
            return False
        return True
