"""Counts of one cache level."""

from __future__ import annotations

from dataclasses import dataclass

from cache.entry import CacheEntry


@dataclass(slots=True)
class Stats:
    """Counts since the process began.

    :param hits: lookups that found a fresh entry.
    :param stale: lookups that found a stale entry, which is still usable.
    :param skipped: entries that were not stored because they were too large or too many writes were pending.
    :param age_s: sum of the ages of all entries found, in seconds.
    """

    hits: int = 0
    stale: int = 0
    misses: int = 0
    stored: int = 0
    evictions: int = 0
    errors: int = 0
    skipped: int = 0
    age_s: float = 0.0

    def record_found(self, entry: CacheEntry, now: float) -> None:
        """Count a lookup that found an entry, fresh or stale."""
        self.age_s += max(0.0, now - entry.created_at)
        if entry.freshness(now) == "fresh":
            self.hits += 1
        else:
            self.stale += 1

    @property
    def hit_rate(self) -> float:
        """Lookups that found a usable entry, as a fraction of all lookups, in [0, 1]; 0 without lookups."""
        found = self.hits + self.stale
        return found / (found + self.misses) if found + self.misses else 0.0

    @property
    def mean_age_s(self) -> float:
        """Mean age of the entries found, in seconds; 0 if none was found."""
        found = self.hits + self.stale
        return self.age_s / found if found else 0.0
