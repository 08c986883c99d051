"""The embedded index as one of several replicas: for settings that embed some sources and put others on servers."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.engine.index import EmbeddedIndex
from adapters.ports.replica import Key, VectorRecord


class EmbeddedReplica:
    """See :class:`adapters.ports.Replica` and :class:`adapters.ports.IndexAdmin`."""

    def __init__(self, index: EmbeddedIndex) -> None:
        self._index = index

    async def check(self) -> bool:
        """Returns ``True``: the index exists since it was opened."""
        return True

    async def create(self) -> None:
        """Does nothing: the index exists since it was opened."""

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        """Write one commit. The index numbers its commits itself, so ``sequence`` is not used."""
        del sequence
        await self._index.write(upserts, deletes)

    async def count(self) -> int:
        """Number of living documents."""
        return self._index.current().segments.count
