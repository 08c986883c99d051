"""How long a cache entry may be used: pure arithmetic on its age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

_MAX_CLOCK_SKEW_S = 5.0

Freshness: TypeAlias = Literal["fresh", "stale", "expired"]


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """Bytes with an age.

    They are fresh for ``ttl_s`` seconds, then stale for ``stale_while_revalidate_s`` seconds, when they may be returned
    while they are recomputed (RFC 5861, section 3), then expired.

    ``created_at`` is in seconds since the epoch, so it has the same meaning in every process.
    """

    content: bytes
    created_at: float
    ttl_s: float
    stale_while_revalidate_s: float

    def freshness(self, now: float) -> Freshness:
        """The state at ``now``. Clocks of different machines may differ by 5 seconds; an entry from further in the
        future is expired, because its age is unknown."""
        age = now - self.created_at
        if age < -_MAX_CLOCK_SKEW_S:
            return "expired"
        if age < self.ttl_s:
            return "fresh"
        return "stale" if age < self.ttl_s + self.stale_while_revalidate_s else "expired"

    def remaining_s(self, now: float) -> float:
        """Seconds until the entry expires; 0 if it is expired."""
        return max(0.0, self.created_at + self.ttl_s + self.stale_while_revalidate_s - now)


def jittered(seconds: float, draw: float, fraction: float = 0.1) -> float:
    """``seconds`` reduced by up to ``fraction`` of them, so that entries created together do not expire together.

    :param draw: a random number in [0, 1].
    """
    return seconds * (1.0 - fraction * draw)
