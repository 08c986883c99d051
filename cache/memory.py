"""The first cache level (L1): in this process, bounded in bytes, the least recently used entry is evicted first."""

from __future__ import annotations

from cachetools import LRUCache

from cache.entry import CacheEntry
from cache.stats import Stats

OVERHEAD = 512
"""Bytes of memory that an entry needs beside its key and content: Python objects and two hash table slots. Measured,
then rounded up."""


class MemoryLevel:
    """Cache entries in memory. Not thread-safe: it belongs to one event loop.

    :param max_bytes: limit for keys, contents and ``OVERHEAD`` of all entries.
    :raises ValueError: if ``max_bytes`` is not positive.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ValueError(f"the size of the memory cache is {max_bytes} bytes, allowed are 1 and more")
        self.stats = Stats()
        self._entries = _Entries(max_bytes, self.stats)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """Size of all entries in bytes."""
        return int(self._entries.currsize)

    def get(self, key: bytes, now: float, other_key: bytes | None = None) -> CacheEntry | None:
        """The entry, now the most recently used one; ``None`` if there is none or it is expired at ``now``.

        :param other_key: a second key, for which there is a lookup if there is none at ``key``. Both count as one.
        """
        for each in (key,) if other_key is None else (key, other_key):
            stored = self._entries.get(each)
            if stored is None:
                continue
            entry, _ = stored
            if entry.freshness(now) == "expired":
                self.delete(each)
                continue
            self.stats.record_found(entry, now)
            return entry
        self.stats.misses += 1
        return None

    def put(self, key: bytes, entry: CacheEntry) -> None:
        """Store the entry and evict the least recently used ones until it fits.

        An entry that is larger than ``max_bytes`` is not stored and evicts nothing.
        """
        self.delete(key)
        size = len(key) + len(entry.content) + OVERHEAD
        if size > self._entries.maxsize:
            self.stats.skipped += 1
            return
        self._entries[key] = entry, size
        self.stats.stored += 1

    def delete(self, key: bytes) -> None:
        """Remove the entry, if there is one."""
        self._entries.pop(key, None)


class _Entries(LRUCache[bytes, tuple[CacheEntry, int]]):
    """The entries with their sizes in bytes. Evictions are counted."""

    def __init__(self, max_bytes: int, stats: Stats) -> None:
        super().__init__(max_bytes, getsizeof=lambda stored: stored[1])
        self._stats = stats

    def popitem(self) -> tuple[bytes, tuple[CacheEntry, int]]:
        self._stats.evictions += 1
        return super().popitem()
