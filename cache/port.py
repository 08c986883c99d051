"""The ports of what processes share through a server."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from cache.entry import CacheEntry
from cache.stats import Stats


class InvalidationCounters(Protocol):
    """Numbers by name that grow with every write, as far as this process knows them."""

    def known(self, name: str) -> int:
        """The value that this process knows; 0 if it knows none."""
        ...

    async def ensure_loaded(self, names: Collection[str]) -> bool:
        """Read the counters that are not known yet; returns whether other processes use the same values."""
        ...

    async def increment(self, names: Iterable[str]) -> None:
        """Invalidate everything cached under these names. Never raises."""
        ...

    async def run(self) -> None:
        """Receive the increments of other processes; runs until it is cancelled."""
        ...


class SharedLevel(Protocol):
    """A cache level that several processes share. Its methods never raise, and none exceeds its own short deadline."""

    @property
    def stats(self) -> Stats:
        """Counts since the process began."""
        ...

    @property
    def state(self) -> str:
        """The state of its circuit breaker: ``closed``, ``open`` or ``half-open``."""
        ...

    async def get(self, key: bytes, now: float) -> CacheEntry | None:
        """The entry; ``None`` if there is none or it is expired at ``now``."""
        ...

    def put(self, key: bytes, entry: CacheEntry, now: float) -> None:
        """Store the entry in the background."""
        ...
