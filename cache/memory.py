"""The first level: in this process, bounded in bytes, the least recently used goes first."""

from __future__ import annotations

from collections import OrderedDict

from cache.policy import Entry
from cache.stats import Stats

OVERHEAD = 512
"""Bytes that an entry costs beside its key and content: objects, and a place in two tables. Measured, rounded up."""


class Memory:
    """Not for threads: one event loop owns it.

    :param max_bytes: of keys, contents and what it takes to keep them.
    :raises ValueError: if that is not positive.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ValueError(f"a cache of {max_bytes} bytes keeps nothing, allowed are 1 and more")
        self.stats = Stats()
        self.bytes = 0
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes, now: float) -> Entry | None:
        """The entry, now the most recently used, if it is not expired."""
        entry = self._entries.get(key)
        if entry is None:
            self.stats.misses += 1
            return None
        if entry.freshness(now) == "expired":
            self.delete(key)
            self.stats.misses += 1
            return None
        self._entries.move_to_end(key)
        self.stats.found(entry, now)
        return entry

    def put(self, key: bytes, entry: Entry) -> None:
        """Keep it, at the cost of the least recently used; not at all, if it is larger than everything may be."""
        self.delete(key)
        size = _size(key, entry)
        if size > self._max_bytes:
            self.stats.skipped += 1
            return
        while self.bytes + size > self._max_bytes:
            oldest, gone = self._entries.popitem(last=False)
            self.bytes -= _size(oldest, gone)
            self.stats.evictions += 1
        self._entries[key] = entry
        self.bytes += size
        self.stats.stored += 1

    def delete(self, key: bytes) -> None:
        """Forget it, if it is there."""
        if (gone := self._entries.pop(key, None)) is not None:
            self.bytes -= _size(key, gone)


def _size(key: bytes, entry: Entry) -> int:
    return len(key) + len(entry.content) + OVERHEAD
