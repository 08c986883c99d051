"""The first cache level (L1): in this process, bounded in bytes, the least recently used entry is evicted first."""

from __future__ import annotations

from collections import OrderedDict

from cache.policy import CacheEntry
from cache.stats import Stats

OVERHEAD = 512
"""Bytes of memory that an entry needs beside its key and content: Python objects and two hash table slots. Measured,
then rounded up."""


class MemoryLevel:
    """Not thread-safe: it belongs to one event loop.

    :param max_bytes: limit for keys, contents and ``OVERHEAD`` of all entries.
    :raises ValueError: if ``max_bytes`` is not positive.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ValueError(f"the size of the memory cache is {max_bytes} bytes, allowed are 1 and more")
        self.stats = Stats()
        self.bytes = 0
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, CacheEntry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes, now: float, other_key: bytes | None = None) -> CacheEntry | None:
        """The entry, now the most recently used one; ``None`` if there is none or it is expired at ``now``.

        :param other_key: where to look if there is none at ``key``. Both together are one lookup.
        """
        for each in (key,) if other_key is None else (key, other_key):
            entry = self._entries.get(each)
            if entry is None:
                continue
            if entry.freshness(now) == "expired":
                self.delete(each)
                continue
            self._entries.move_to_end(each)
            self.stats.record_found(entry, now)
            return entry
        self.stats.misses += 1
        return None

    def put(self, key: bytes, entry: CacheEntry) -> None:
        """Store the entry and evict the least recently used ones until it fits.

        An entry that is larger than ``max_bytes`` is not stored and evicts nothing.
        """
        self.delete(key)
        size = _size(key, entry)
        if size > self._max_bytes:
            self.stats.skipped += 1
            return
        while self.bytes + size > self._max_bytes:
            evicted_key, evicted = self._entries.popitem(last=False)
            self.bytes -= _size(evicted_key, evicted)
            self.stats.evictions += 1
        self._entries[key] = entry
        self.bytes += size
        self.stats.stored += 1

    def delete(self, key: bytes) -> None:
        """Remove the entry, if there is one."""
        if (deleted := self._entries.pop(key, None)) is not None:
            self.bytes -= _size(key, deleted)


def _size(key: bytes, entry: CacheEntry) -> int:
    return len(key) + len(entry.content) + OVERHEAD
