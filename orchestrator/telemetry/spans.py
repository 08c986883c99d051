"""Time spent by one request in each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


class StageTimings:
    """Milliseconds by stage.

    :param clock: seconds from any origin, never going back.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._start = clock()
        self.stages_ms: dict[str, float] = {}

    def total_ms(self) -> float:
        """Milliseconds since the start of the request."""
        return (self._clock() - self._start) * 1_000

    def record(self, stage: str, ms: float) -> None:
        """A stage that was measured elsewhere."""
        self.stages_ms[stage] = ms

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measures the block, also if it raises."""
        start = self._clock()
        try:
            yield
        finally:
            self.stages_ms[name] = (self._clock() - start) * 1_000
