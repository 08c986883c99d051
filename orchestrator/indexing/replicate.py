"""One write to several stores that share no transaction: journal first, then each store, in order and on its own.

What a store that is away lacks stays in the journal, is named in the acknowledgement, and is delivered before anything
newer. A writer waits for a store that hangs no longer than its patience; other writers and searches never wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

import anyio
import anyio.to_thread

from adapters import AdapterError, Entry
from adapters.port import Acknowledgement, Key, Store
from orchestrator.indexing.deliver import Delivery
from orchestrator.indexing.journal import Journal, Write


class Replicator:
    """The :class:`adapters.port.Writer` of server mode.

    :param stores: by the name that acknowledgements and cursors call them.
    :param index_version: what the stores are built with.
    :param patience_s: how long a write waits for a store that is being given earlier ones.
    """

    def __init__(
        self, journal: Journal, stores: Mapping[str, Store], index_version: str, patience_s: float = 30.0
    ) -> None:
        self.index_version = index_version
        self._journal = journal
        self._stores = stores
        self._deliveries = [Delivery(journal, name, store, patience_s) for name, store in stores.items()]
        self._generation = journal.generation()
        self._stamp = journal.delivered()
        self._looking = Lock()

    def generation(self) -> int:
        """The newest version that any store shows, as far as this process has looked."""
        return self._generation

    def stamp(self) -> int:
        """Another number whenever searches may find something else, as far as this process has looked."""
        return self._stamp

    def refresh(self) -> None:
        """Look what other processes have written. Blocks."""
        with self._looking:  # threads look, too: what one has read before another must not be put down after it
            self._generation = max(self._generation, self._journal.generation())
            self._stamp = max(self._stamp, self._journal.delivered())

    def holds_anything(self) -> bool:
        """Whether some store may lack a write."""
        return self._journal.holds_anything()

    def behind(self, store: str) -> int:
        """How many writes a store lacks."""
        return len(self._journal.pending(store))

    def whole(self, store: str) -> bool:
        """Whether a store is known to have every write as it was meant: who has never written knows nothing."""
        known = self._journal.generation() > 0
        return known and not (self.behind(store) or self._journal.has_gap(store) or self._journal.has_refused(store))

    @property
    def stores(self) -> Iterable[str]:
        """Their names."""
        return self._stores.keys()

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
        """See :class:`adapters.port.Writer`. Slow stores slow their writers."""
        kept = Write.of(upserts, deletes)
        if not kept.records and not kept.deletes:
            return Acknowledgement(self._generation, await self._bring_up())
        version = await anyio.to_thread.run_sync(self._append, kept)
        missing = await self._bring_up()
        refused = await anyio.to_thread.run_sync(self._journal.refused, version)
        return Acknowledgement(self._generation, missing, refused)

    async def replay(self) -> Mapping[str, str]:
        """Deliver what is waiting; which stores still lack something, and why."""
        if not await anyio.to_thread.run_sync(self._journal.holds_anything):
            return {}
        return await self._bring_up()

    async def _bring_up(self) -> dict[str, str]:
        """Bring every store up to the journal, all at once: which could not be, and why."""
        missing: dict[str, str] = {}

        async def bring_up(delivery: Delivery) -> None:
            if (reason := await delivery.bring_up()) is not None:
                missing[delivery.name] = reason

        async with anyio.create_task_group() as group:
            for delivery in self._deliveries:
                group.start_soon(bring_up, delivery)
        await anyio.to_thread.run_sync(self._sweep)
        self.refresh()
        return missing

    def _append(self, write: Write) -> int:
        with self._journal.exclusive():
            return self._journal.append(write, list(self._stores))

    def _sweep(self) -> None:
        with self._journal.exclusive():
            self._journal.sweep(list(self._stores))
