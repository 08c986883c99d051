"""One write to several stores that share no transaction: journal first, then each store, in order and on its own.

What a store that is away lacks stays in the journal, is named in the acknowledgement, and is delivered before anything
newer. One that hangs holds up the writers, no longer than its adapter lets it; searches never.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

import anyio
import anyio.to_thread

from adapters import AdapterError, Entry, Rejected
from adapters.port import Acknowledgement, Key, Store
from orchestrator.indexing.journal import Journal, Write

_log = logging.getLogger(__name__)


class Replicator:
    """The :class:`adapters.port.Writer` of server mode.

    :param stores: by the name that acknowledgements and cursors call them.
    :param index_version: what the stores are built with.
    """

    def __init__(self, journal: Journal, stores: Mapping[str, Store], index_version: str) -> None:
        self.index_version = index_version
        self._journal = journal
        self._stores = stores
        self._turn = anyio.Lock()
        self._prepared: set[str] = set()
        self._generation = journal.generation()

    def generation(self) -> int:
        """The newest version that any store shows, as far as this process has looked."""
        return self._generation

    def refresh(self) -> None:
        """Look what other processes have written. Blocks."""
        self._generation = max(self._generation, self._journal.generation())

    def behind(self) -> dict[str, int]:
        """How many writes each store lacks."""
        return {name: len(self._journal.pending(name)) for name in self._stores}

    def gaps(self) -> list[str]:
        """Stores that came when the journal no longer held everything: they lack what was written before."""
        return [name for name in self._stores if self._journal.has_gap(name)]

    async def counts(self) -> dict[str, int | str]:
        """How many documents each store holds, or why it does not say."""
        told: dict[str, int | str] = {}
        for name, store in self._stores.items():
            try:
                told[name] = await store.count()
            except AdapterError as error:
                told[name] = str(error)
        return told

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key]) -> Acknowledgement:
        """See :class:`adapters.port.Writer`. Slow stores slow their writers: one write at a time is under way."""
        kept = Write.of(upserts, deletes)
        return await self._deliver(kept if kept.records or kept.deletes else None)

    async def replay(self) -> Mapping[str, str]:
        """Deliver what is waiting; which stores still lack something, and why."""
        if not await anyio.to_thread.run_sync(self._journal.holds_anything):
            return {}
        return (await self._deliver(None)).missing

    async def _deliver(self, new: Write | None) -> Acknowledgement:
        """Take our turn at the journal: note what is new, bring the stores up to it, remove what all hold."""
        async with self._turn:
            with ExitStack() as held:
                await anyio.to_thread.run_sync(held.enter_context, self._journal.exclusive())
                if new:
                    await anyio.to_thread.run_sync(self._journal.append, new, list(self._stores))
                missing, refused = await self._bring_up()
                await anyio.to_thread.run_sync(self._journal.sweep, list(self._stores))
                self.refresh()
                return Acknowledgement(self._generation, missing, refused)

    async def _bring_up(self) -> tuple[dict[str, str], dict[Key, dict[str, str]]]:
        """Bring every store up to the journal: which could not be, and which documents a store would not have."""
        missing: dict[str, str] = {}
        refused: dict[Key, dict[str, str]] = defaultdict(dict)

        async def bring_up(name: str, store: Store) -> None:
            try:
                if pending := self._journal.pending(name):
                    self._journal.note_gap(name)
                for version in pending:
                    if name not in self._prepared:  # it may have been away when the service began
                        await store.prepare()
                        self._prepared.add(name)
                    write = await anyio.to_thread.run_sync(self._journal.read, version)
                    for key, reason in (await _apply(store, version, write.entries(), write.deletes)).items():
                        _log.error("%s refuses a document for good: %s", name, reason)
                        refused[key][name] = reason
                    await anyio.to_thread.run_sync(self._journal.advance, name, version)
            except AdapterError as error:
                _log.warning("%s does not hold the newest writes: %s", name, error)
                missing[name] = str(error)
                self._prepared.discard(name)  # whatever it lost meanwhile is made again
            except Exception as error:
                # A defect in one adapter, or a full disk under its cursor, must not keep the others from theirs.
                _log.exception("%s could not be brought up", name)
                missing[name] = f"internal error: {type(error).__name__}"

        async with anyio.create_task_group() as group:
            for name, store in self._stores.items():
                group.start_soon(bring_up, name, store)
        return missing, refused


async def _apply(store: Store, version: int, entries: Sequence[Entry], deletes: Sequence[Key]) -> dict[Key, str]:
    """Give a store a write; the documents that it refuses, found by halving, must not keep the others out.

    :raises Rejected: if it refuses all of several: then it is not the documents that are at fault.
    """
    try:
        await store.apply(version, entries, deletes)
    except Rejected as error:
        keys = [*(entry.record.key for entry in entries), *deletes]
        if len(keys) == 1:
            return {keys[0]: str(error)}
        half, rest = len(entries) // 2, len(deletes) // 2
        if len(entries) == 1:
            half, rest = 1, 0
        refused = await _apply(store, version, entries[:half], deletes[:rest])
        refused |= await _apply(store, version, entries[half:], deletes[rest:])
        if len(refused) == len(keys):
            raise
        return refused
    return {}
