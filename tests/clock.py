"""A clock for tests of expiry and of time limits."""

from __future__ import annotations


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
