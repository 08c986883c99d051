"""The way from the journal to one store: everything in its order, by one process at a time, whatever the others do."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from adapters import AdapterError, Entry, Rejected, TimedOut
from adapters.port import Key, Store
from orchestrator.indexing.journal import Journal

_log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.02
"""How often a lock is tried that another process holds: nothing tells when a file's lock is free."""
_SUSPICIOUS = 8
"""Documents refused one by one, and none taken: no more are tried."""


class Delivery:
    """Brings one store up to the journal.

    :param patience_s: how long a writer waits for its turn while somebody else brings the store up.
    """

    def __init__(self, journal: Journal, name: str, store: Store, patience_s: float) -> None:
        self.name = name
        self._journal = journal
        self._store = store
        self._patience_s = patience_s
        self._turn = anyio.Lock()
        self._prepared = False
        self._at_once: int | None = None

    async def bring_up(self) -> str | None:
        """Deliver what is pending now; why the store still lacks some of it, or ``None``."""
        try:
            pending = await anyio.to_thread.run_sync(self._journal.pending, self.name)
            if not pending:
                return None
            async with self._our_turn() as ours:
                if ours:
                    await self._deliver()
            if await anyio.to_thread.run_sync(self._journal.lacks, self.name, pending[-1]):
                return f"is still being given earlier writes after {self._patience_s:g} s"
        except AdapterError as error:
            _log.warning("%s does not hold the newest writes: %s", self.name, error)
            self._prepared = False  # whatever it lost meanwhile is made again
            return str(error)
        except Exception as error:
            # A defect in one adapter, or a full disk under its cursor, must not keep the others from theirs.
            _log.exception("%s could not be brought up", self.name)
            return f"internal error: {type(error).__name__}"
        return None

    @asynccontextmanager
    async def _our_turn(self) -> AsyncIterator[bool]:
        """Whether our turn came within our patience; the lock, within this process and across all, is held inside."""
        with anyio.move_on_after(self._patience_s) as waiting:
            async with self._turn:
                while True:
                    with self._journal.delivering(self.name) as held:
                        if held:
                            waiting.deadline = float("inf")
                            yield True
                            return
                    await anyio.sleep(_LOOK_AGAIN_S)
        yield False

    async def _deliver(self) -> None:
        """Everything that the store lacks, in its order."""
        pending = await anyio.to_thread.run_sync(self._journal.pending, self.name)
        if pending:
            self._journal.note_gap(self.name)
        for version in pending:
            if not self._prepared:  # it may have been away when the service began
                await self._store.prepare()
                self._prepared = True
            write = await anyio.to_thread.run_sync(self._journal.read, version)
            refused = await self._apply(version, write.entries(), write.deletes)
            for reason in refused.values():
                _log.error("%s refuses a document for good: %s", self.name, reason)
            if refused:
                await anyio.to_thread.run_sync(self._journal.note_refused, self.name, version, refused)
            await anyio.to_thread.run_sync(self._journal.advance, self.name, version)

    async def _apply(self, version: int, entries: Sequence[Entry], deletes: Sequence[Key]) -> dict[Key, str]:
        """One write, in pieces no larger than the store can take in its time: which documents it refuses.

        Documents that are refused, found by halving, must not keep the others out.

        :raises Rejected: if nothing at all is taken: then it is not the documents that are at fault.
        :raises TimedOut: and the next attempt is made in pieces of half the size.
        """
        count = max(len(entries), len(deletes))
        size = min(self._at_once or count, count)
        pieces = [slice(start, start + size) for start in range(0, count, size)]
        waiting = [(entries[piece], deletes[piece]) for piece in reversed(pieces)]
        refused: dict[Key, str] = {}
        taken = False
        while waiting:
            some, gone = waiting.pop()
            try:
                await self._store.apply(version, some, gone)
                taken = True
            except TimedOut:
                self._at_once = max(1, size // 2)
                raise
            except Rejected as error:
                if len(some) + len(gone) > 1:
                    waiting += reversed(_halves(some, gone))
                    continue
                refused |= {key: str(error) for key in (*(entry.record.key for entry in some), *gone)}
                if not taken and len(refused) >= (_SUSPICIOUS if waiting else 2):
                    raise
        self._at_once = None if size == count else 2 * size
        return refused


def _halves(entries: Sequence[Entry], deletes: Sequence[Key]) -> list[tuple[Sequence[Entry], Sequence[Key]]]:
    """A piece of at least two, as two that are smaller."""
    if len(entries) == len(deletes) == 1:
        return [(entries, ()), ((), deletes)]
    half, rest = len(entries) // 2, len(deletes) // 2
    return [(entries[:half], deletes[:rest]), (entries[half:], deletes[rest:])]
