"""A library as one of several stores: for settings that keep some sources here and others on servers."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.embedded.library import Library
from adapters.port import Entry, Key


class LibraryStore:
    """See :class:`adapters.port.Store`."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def built(self) -> bool:
        """It is there since it was opened."""
        return True

    async def prepare(self) -> None:
        """It is there since it was opened."""

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:  # noqa: ARG002
        """One version of the library; the versions of others mean nothing to it."""
        await self._library.write(upserts, deletes)

    async def count(self) -> int:
        """Living documents."""
        return self._library.current().catalog.count

    async def close(self) -> None:
        """It holds no connections."""
