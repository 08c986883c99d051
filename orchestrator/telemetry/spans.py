"""Time spent by one request in each stage."""

from __future__ import annotations

from collections.abc import Callable
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

    def stage(self, name: str) -> _Stage:
        """Measures the block, also if it raises."""
        return _Stage(self.stages_ms, name, self._clock)


class _Stage:
    """A context manager; not one of :mod:`contextlib`, which takes twice as long."""

    __slots__ = ("_clock", "_name", "_stages_ms", "_start")

    def __init__(self, stages_ms: dict[str, float], name: str, clock: Callable[[], float]) -> None:
        self._stages_ms = stages_ms
        self._name = name
        self._clock = clock

    def __enter__(self) -> None:
        self._start = self._clock()

    def __exit__(self, *_: object) -> None:
        self._stages_ms[self._name] = (self._clock() - self._start) * 1_000
