"""What one request did in each stage, and how long it took."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

MS_DIGITS = 3
"""Digits after the point of times in milliseconds that callers see."""


class StageTimings:
    """The time of each stage in milliseconds, and its start in seconds of the clock.

    ``log_fields`` is what the stages did, for the log line: numbers, ids and reasons, never a text of a document.

    :param clock: seconds from any origin, never going back.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._start = clock()
        self.stages_ms: dict[str, float] = {}
        self.starts_s: dict[str, float] = {}
        self.log_fields: dict[str, object] = {}

    def total_ms(self) -> float:
        """Milliseconds since the start of the request."""
        return (self._clock() - self._start) * 1_000

    def rounded_ms(self) -> dict[str, float]:
        """The time of each stage as callers see it."""
        return {stage: round(ms, MS_DIGITS) for stage, ms in self.stages_ms.items()}

    def record(self, stage: str, ms: float, start_s: float | None = None) -> None:
        """Record a stage that was measured elsewhere.

        :param start_s: when it began, in seconds of the clock; by default so that it ends now.
        """
        self.stages_ms[stage] = ms
        self.starts_s[stage] = self._clock() - ms / 1_000 if start_s is None else start_s

    def stage(self, name: str) -> _Stage:
        """A context manager that measures a stage, also if it raises."""
        return _Stage(self, name, self._clock)


class _Stage:
    """A context manager; not one of :mod:`contextlib`, which takes twice as long."""

    __slots__ = ("_clock", "_name", "_start", "_timings")

    def __init__(self, timings: StageTimings, name: str, clock: Callable[[], float]) -> None:
        self._timings = timings
        self._name = name
        self._clock = clock

    def __enter__(self) -> None:
        self._start = self._timings.starts_s[self._name] = self._clock()

    def __exit__(self, *_: object) -> None:
        self._timings.stages_ms[self._name] = (self._clock() - self._start) * 1_000
