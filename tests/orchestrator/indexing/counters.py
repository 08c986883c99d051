"""Invalidation counters in memory, in place of a Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class MemoryCounters:
    """See :class:`cache.InvalidationCounters`.

    :ivar is_available: whether counters can be loaded.
    :ivar loaded: the names that were loaded.
    """

    def __init__(self) -> None:
        self.is_available = True
        self.loaded: set[str] = set()
        self._counts: Counter[str] = Counter()

    def known(self, name: str) -> int:
        return self._counts[name]

    async def ensure_loaded(self, names: Iterable[str]) -> bool:
        self.loaded |= set(names)
        return self.is_available

    async def increment(self, names: Iterable[str]) -> None:
        self._counts.update(names)

    async def run(self) -> None:
        raise NotImplementedError
