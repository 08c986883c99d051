"""How long an answer is good: pure arithmetic on its age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

_SKEW_S = 5.0

Freshness: TypeAlias = Literal["fresh", "stale", "expired"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Bytes and how long they are good: fresh for ``fresh_s`` seconds, then usable while somebody makes them anew for
    another ``stale_s``.

    ``born`` is in seconds since the epoch, so that it means the same in every process.
    """

    content: bytes
    born: float
    fresh_s: float
    stale_s: float

    def freshness(self, now: float) -> Freshness:
        """At ``now``. Clocks differ a little; what comes from further in the future has no age that means anything."""
        age = now - self.born
        if age < -_SKEW_S:
            return "expired"
        if age < self.fresh_s:
            return "fresh"
        return "stale" if age < self.fresh_s + self.stale_s else "expired"

    def left_s(self, now: float) -> float:
        """Seconds until it is expired; 0 if it is."""
        return max(0.0, self.born + self.fresh_s + self.stale_s - now)


def jittered(seconds: float, draw: float, share: float = 0.1) -> float:
    """``seconds`` less up to ``share`` of them, so that what was made together does not expire together.

    :param draw: at random, in [0, 1].
    """
    return seconds * (1.0 - share * draw)
