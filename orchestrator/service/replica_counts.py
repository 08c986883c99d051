"""Notices that a replica has lost documents."""

from __future__ import annotations

from collections.abc import Mapping

import anyio.to_thread

from orchestrator.indexing.replication import Replication


class ReplicaCounts:
    """Compares the number of documents of all replicas.

    An index on a server can be deleted, or restored from an old copy, while the write log takes all writes for applied.

    :ivar problems: what replicas lack, by the name of their source.
    """

    def __init__(self, replication: Replication) -> None:
        self.problems: Mapping[str, str] = {}
        self._replication = replication
        self._suspected: Mapping[str, str] = {}

    async def check(self) -> None:
        """Count, and create indexes that were deleted. A problem is one that two checks in a row have found, because
        writes of other processes reach one replica after the other."""
        await self._replication.create_missing()
        counts = await self._replication.counts()
        lacking = await anyio.to_thread.run_sync(self._replication.lacking, counts)
        self.problems = {source: problem for source, problem in lacking.items() if source in self._suspected}
        self._suspected = lacking
