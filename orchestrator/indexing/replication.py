"""Writes to several replicas that share no transaction: to the log first, then to each replica, in order.

A write that a replica could not apply stays in the log, is named in the acknowledgement, and is applied before any
newer one. Writers wait for a slow replica, up to a time limit; searches never do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from threading import Lock

import anyio.to_thread

from adapters import AdapterError, Unavailable, Viewer
from adapters.model.protection import UNRESTRICTED
from adapters.ports import VectorRecord
from adapters.ports.documents import ProtectionReader
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from orchestrator.indexing.log.quarantine import Quarantined
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.log.write_log import WriteLog, store_name
from orchestrator.indexing.replica_applier import UNDECIDED, AdministeredReplica, ReplicaApplier

_log = logging.getLogger(__name__)


class Replication:
    """The :class:`adapters.ports.DocumentWriter` of server mode.

    :param replicas: by the name that acknowledgements and cursors use.
    :param documents: the documents of ``documents_replica``, one of the replicas.
    :param build_id: build id of the replicas.
    :param slot_timeout_s: how long a write waits while another one is applying to a replica.
    """

    def __init__(
        self,
        log: WriteLog,
        replicas: Mapping[str, AdministeredReplica],
        documents_replica: str,
        documents: ProtectionReader,
        build_id: str,
        slot_timeout_s: float = 30.0,
    ) -> None:
        self.build_id = build_id
        self._log = log
        self._replicas = replicas
        self._documents_replica = documents_replica
        self._appliers = {
            name: ReplicaApplier(log, name, replica, slot_timeout_s, documents if name == documents_replica else None)
            for name, replica in replicas.items()
        }
        self._generation = log.generation()
        self._applied_total = log.applied_total()
        self._refreshing = Lock()

    def generation(self) -> int:
        """The newest write that any replica has applied, as far as this process knows."""
        return self._generation

    def data_version(self) -> int:
        """A number that changes whenever searches may return other documents, as far as this process knows."""
        return self._applied_total

    def refresh(self) -> None:
        """Read what other processes have written. Blocks; threads may call it."""
        with self._refreshing:
            self._generation = max(self._generation, self._log.generation())
            self._applied_total = max(self._applied_total, self._log.applied_total())

    def log_size(self) -> tuple[int, int]:
        """Bytes of the log, and the maximum. Blocks."""
        return self._log.size_bytes(), self._log.max_bytes

    def has_unapplied(self) -> bool:
        """Whether a replica may lack a write."""
        return not self._log.is_empty()

    def has_applied(self, generation: int) -> bool:
        """Whether every replica has applied a write. Reads files."""
        return all(self._log.is_applied(name, generation) for name in self._replicas)

    def lag(self, replica: str) -> int:
        """Number of writes that a replica has not applied."""
        return len(self._log.unapplied(replica))

    def unapplied_at(self, replica: str) -> list[float]:
        """When the writes that a replica has not applied were appended, in seconds since the epoch, in order."""
        return [sequence / 1_000_000 for sequence in self._log.unapplied(replica)]

    @property
    def documents_replica(self) -> str:
        """The replica that documents are read from."""
        return self._documents_replica

    @property
    def replicas(self) -> Iterable[str]:
        """The names of all replicas."""
        return self._replicas.keys()

    def with_missed_history(self) -> list[str]:
        """Replicas that were added after writes had been truncated: they lack these writes."""
        return [name for name in self._replicas if self._log.has_missed_history(name)]

    def damaged_writes(self) -> list[str]:
        """The damaged files of the log. Blocks: it reads the whole log."""
        return self._log.damaged()

    def refused(self) -> list[Quarantined]:
        """The documents that replicas refused, the oldest write first."""
        return [entry for entry in self._log.quarantine.entries() if entry.replica in self._replicas]

    async def retry_refused(self) -> int:
        """Apply the refused documents again. Returns how many were accepted.

        :raises AdapterError: if a replica is unavailable or lacks writes. The replicas before it have been tried.
        """
        accepted = 0
        try:
            for name in sorted({entry.replica for entry in await anyio.to_thread.run_sync(self.refused)}):
                accepted += await self._appliers[name].retry_refused()
        finally:
            if accepted:  # an empty write: it invalidates the caches of every process
                await anyio.to_thread.run_sync(self._append, Write.of([], []))
                await self._catch_up()
        return accepted

    async def fill(
        self, replica: str, batches: AsyncIterable[Sequence[VectorRecord]], advance: Callable[[int], None]
    ) -> int:
        """See :meth:`ReplicaApplier.fill`. An empty write then invalidates the caches of every process."""
        written = await self._appliers[replica].fill(batches, advance)
        await anyio.to_thread.run_sync(self._append, Write.of([], []))
        await self._catch_up()
        return written

    async def counts(self) -> dict[str, int | str]:
        """Number of documents in each replica, or the error."""
        counts: dict[str, int | str] = {}
        for name, replica in self._replicas.items():
            try:
                counts[name] = await replica.count()
            except AdapterError as error:
                counts[name] = str(error)
        return counts

    async def create_missing(self) -> None:
        """Create the indexes that were deleted. Their documents are lost, see :meth:`lacking`."""
        for name, replica in self._replicas.items():
            try:
                if not await replica.check():
                    _log.error("the index of %s does not exist: it is created again, without documents", name)
                    await replica.create()
            except AdapterError as error:
                _log.warning("the index of %s could not be checked: %s", name, error.for_operators)

    def lacking(self, counts: Mapping[str, int | str]) -> dict[str, str]:
        """Which replicas have fewer documents than another one, with what they lack. Blocks.

        Those with unapplied writes are left out. A document that a replica refused is not one that it lacks.

        :param counts: see :meth:`counts`.
        """
        numbers = {name: count for name, count in counts.items() if isinstance(count, int)}
        refused = Counter((entry.replica, bool(entry.write.records)) for entry in self.refused())
        total = max((count - refused[name, False] for name, count in numbers.items()), default=0)
        return {
            store_name(name): f"has {count} of {total} documents"
            for name, count in numbers.items()
            if count + refused[name, True] < total and not self.lag(name)
        }

    def is_current(self) -> bool:
        """Whether the replica that documents are read from has every write. Blocks."""
        return not self.lag(self._documents_replica)

    def comparable(self, replica: str, keys: Iterable[Key]) -> frozenset[Key]:
        """The documents among these that a replica has in no older version than the one that documents are read from.

        Blocks. A document that any replica refused is not among them.

        :raises Unavailable: if the replica lacks writes that the other one has.
        """
        if not self._log.is_applied(replica, self._log.applied(self._documents_replica)):
            raise Unavailable(f"{store_name(replica)} lacks some of the newest writes")
        return frozenset(key for key in keys if not self._log.quarantine.contains(key, self._replicas))

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """See :class:`adapters.ports.DocumentWriter`. A slow replica slows its writers."""
        write = Write.of(upserts, deletes, viewer)
        if not write.records and not write.deletes:
            return Acknowledgement(self._generation, _by_store(await self._catch_up()))
        sequence = await anyio.to_thread.run_sync(self._append, write)
        pending = await self._catch_up()
        rejections = await anyio.to_thread.run_sync(
            self._log.quarantine.reasons, sequence, write.keys, self._replicas.keys()
        )
        hidden: frozenset[Key] | None = frozenset()
        if write.is_conditional:
            hidden = await anyio.to_thread.run_sync(self._log.hidden, sequence)
        return Acknowledgement(
            self._generation,
            _by_store(pending),
            {key: _by_store(reasons) for key, reasons in rejections.items()},
            hidden,
        )

    async def apply_unapplied(self) -> Mapping[str, str]:
        """Apply unapplied writes. Returns why replicas still lack some. A read-only process applies none."""
        if await anyio.to_thread.run_sync(self._has_nothing_to_apply):
            return {}
        return await self._catch_up()

    def _has_nothing_to_apply(self) -> bool:
        return self._log.is_empty() or not self._log.is_writable()

    async def _catch_up(self) -> dict[str, str]:
        """Apply the log to all replicas concurrently. Returns why replicas still lack writes."""
        reasons = await self._reasons(self._appliers)
        if self._documents_replica not in reasons:  # the other replicas waited for its decision
            waiting = [name for name, reason in reasons.items() if reason == UNDECIDED]
            reasons = {name: reason for name, reason in reasons.items() if reason != UNDECIDED}
            reasons |= await self._reasons(waiting)
        await anyio.to_thread.run_sync(self._truncate)
        self.refresh()
        return reasons

    async def _reasons(self, names: Iterable[str]) -> dict[str, str]:
        appliers = [self._appliers[name] for name in names]
        reasons = await asyncio.gather(*(applier.catch_up() for applier in appliers))
        return {applier.name: reason for applier, reason in zip(appliers, reasons, strict=True) if reason is not None}

    def _append(self, write: Write) -> int:
        if not self._log.is_writable():
            raise Unavailable("this process is read-only: send the write to a process that may write")
        with self._log.exclusive():
            return self._log.append(write, list(self._replicas))

    def _truncate(self) -> None:
        with self._log.exclusive():
            self._log.truncate(list(self._replicas))


def _by_store(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons by the first word of a name: the address in it is for operators."""
    return {store_name(name): reason for name, reason in reasons.items()}
