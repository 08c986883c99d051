"""A write is acknowledged when everybody is told that what they keep is old."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import anyio.to_thread

from adapters import Entry, Scope, Writer
from adapters.port import Acknowledgement, Key
from orchestrator.versions import Versions


class Announcing:
    """A :class:`adapters.port.Writer` that tells :class:`Versions`, before it returns, whose documents were written.

    :param waiting: whether writes of others wait for a store: then this one delivers them, too.
    """

    def __init__(self, writer: Writer, versions: Versions, waiting: Callable[[], bool]) -> None:
        self._writer = writer
        self._versions = versions
        self._waiting = waiting

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key]) -> Acknowledgement:
        """See :class:`adapters.port.Writer`. Also where the write fails: some of it may have been done."""
        gone = list(deletes)
        scopes = {Scope(entry.record.tenant, entry.record.environment) for entry in upserts}
        scopes |= {Scope(tenant, environment) for tenant, environment, _ in gone}
        others = await anyio.to_thread.run_sync(self._waiting)
        try:
            return await self._writer.write(upserts, gone)
        finally:
            await self._versions.written(scopes, others)
