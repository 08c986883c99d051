"""What a level of the cache did so far."""

from __future__ import annotations

from dataclasses import dataclass

from cache.policy import Entry


@dataclass(slots=True)
class Stats:
    """Counted since the process began. ``age_s`` is the sum of the ages of all hits, in seconds."""

    hits: int = 0
    stale: int = 0
    misses: int = 0
    stored: int = 0
    evictions: int = 0
    errors: int = 0
    skipped: int = 0
    age_s: float = 0.0

    def found(self, entry: Entry, now: float) -> None:
        """Count an entry that was there, and not expired."""
        self.age_s += max(0.0, now - entry.born)
        if entry.freshness(now) == "fresh":
            self.hits += 1
        else:
            self.stale += 1

    @property
    def hit_rate(self) -> float:
        """Of what was asked, what was there and usable: in [0, 1]."""
        found = self.hits + self.stale
        return found / (found + self.misses) if found + self.misses else 0.0

    @property
    def mean_age_s(self) -> float:
        """Of what was found."""
        found = self.hits + self.stale
        return self.age_s / found if found else 0.0
