"""Where the time of one request went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

DAY_S = 86_400


def day(now: float) -> int:
    """The day, since the epoch, of a time in seconds since then: what ages are counted in."""
    return int(now // DAY_S)


class Stopwatch:
    """Milliseconds by stage, since it was made."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self.stages: dict[str, float] = {}

    def total_ms(self) -> float:
        """Milliseconds since the start."""
        return (perf_counter() - self._began) * 1_000

    def note(self, stage: str, ms: float) -> None:
        """A stage that somebody else has timed."""
        self.stages[stage] = ms

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens inside, also when it fails."""
        began = perf_counter()
        try:
            yield
        finally:
            self.stages[name] = (perf_counter() - began) * 1_000
