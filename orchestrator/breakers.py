"""A source that fails again and again is left alone for a while: nobody waits for it, and it is not asked to death."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from cache import Breaker
from orchestrator.outcome import Answered, Failed, Outcome

_HARD = 0.5
"""Of the time that a source has by the settings, what it must have had for being late to be its fault."""


class Breakers:
    """One for each source.

    :param failures: in a row, after which a source is left alone.
    :param pause_s: seconds until one request tries it again.
    :param timeout_s: what a source has by the settings, in seconds.
    """

    def __init__(self, failures: int, pause_s: float, timeout_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._made: Callable[[], Breaker] = lambda: Breaker(failures, pause_s, clock)
        self._breakers: dict[str, Breaker] = {}
        self._late_ms = timeout_s * 1_000 * _HARD

    def split(self, sources: Iterable[str]) -> tuple[list[str], dict[str, Outcome]]:
        """Who may be asked, and what is told of the others. Who may be asked must be told of, by :meth:`note`."""
        asked: list[str] = []
        told: dict[str, Outcome] = {}
        for source in sources:
            if self._of(source).allows():
                asked.append(source)
            else:
                told[source] = Failed(source, "failed again and again, and is left alone for a moment", 0.0)
        return asked, told

    def note(self, outcomes: Mapping[str, Outcome]) -> None:
        """What became of who was asked."""
        for source, outcome in outcomes.items():
            breaker = self._of(source)
            match outcome:
                case Answered():
                    breaker.succeeded()
                case Failed(ours=True):
                    breaker.abandoned()
                case Failed(reason="timed out", after_ms=late_ms) if late_ms < self._late_ms:
                    breaker.abandoned()  # who gives it no time learns nothing of it
                case _:
                    breaker.failed()

    def abandon(self, sources: Iterable[str]) -> None:
        """Nobody waited for what would have become of these."""
        for source in sources:
            self._of(source).abandoned()

    def states(self) -> dict[str, str]:
        """By source: ``closed``, ``open`` or ``half-open``."""
        return {source: breaker.state for source, breaker in self._breakers.items()}

    def _of(self, source: str) -> Breaker:
        if source not in self._breakers:
            self._breakers[source] = self._made()
        return self._breakers[source]
