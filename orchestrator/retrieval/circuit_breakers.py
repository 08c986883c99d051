"""A circuit breaker for each source: a source that fails repeatedly is skipped for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from cache import CircuitBreaker
from orchestrator.execution.budget import BLAMED_TIMEOUT
from orchestrator.execution.stage_results import TIMED_OUT, Answered, Failed, Outcome

MAX_FAILURES = 5
"""Failures in a row after which the circuit of a source opens."""


class CircuitBreakers:
    """One circuit breaker for each source.

    :param max_failures: in a row, after which the circuit opens.
    :param reset_s: seconds until one request tries the source again.
    :param timeout_s: the usual time limit of a source, in seconds.
    """

    def __init__(
        self, max_failures: int, reset_s: float, timeout_s: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._parameters = max_failures, reset_s, timeout_s, clock
        self._new: Callable[[], CircuitBreaker] = lambda: CircuitBreaker(max_failures, reset_s, clock)
        self._breakers: dict[str, CircuitBreaker] = {}
        self._blamed_ms = timeout_s * 1_000 * BLAMED_TIMEOUT

    def closed(self) -> CircuitBreakers:
        """Others with the same parameters, all closed."""
        return CircuitBreakers(*self._parameters)

    def split(self, sources: Iterable[str]) -> tuple[list[str], dict[str, Outcome]]:
        """The sources that may be searched, and a failure for each of the others.

        :meth:`record` or :meth:`abandon` has to be called for each source that may be searched.
        """
        allowed: list[str] = []
        skipped: dict[str, Outcome] = {}
        for source in sources:
            if self._breaker(source).allows():
                allowed.append(source)
            else:
                skipped[source] = Failed(source, "circuit open after repeated failures, tried again soon", 0.0)
        return allowed, skipped

    def record(self, outcomes: Mapping[str, Outcome]) -> None:
        """Record the outcome of each source that was searched."""
        for source, outcome in outcomes.items():
            breaker = self._breaker(source)
            match outcome:
                case Answered():
                    breaker.succeeded()
                case Failed(is_blameless=True):
                    breaker.abandoned()
                case Failed(reason=reason, after_ms=after_ms) if reason == TIMED_OUT and after_ms < self._blamed_ms:
                    breaker.abandoned()  # with so little time, the source is not at fault
                case _:
                    breaker.failed()

    def abandon(self, sources: Iterable[str]) -> None:
        """Record that these searches were cancelled, so that their outcome is unknown."""
        for source in sources:
            self._breaker(source).abandoned()

    def states(self) -> dict[str, str]:
        """The state by source: ``closed``, ``open`` or ``half-open``. May be called in another thread."""
        return {source: breaker.state for source, breaker in list(self._breakers.items())}

    def _breaker(self, source: str) -> CircuitBreaker:
        if source not in self._breakers:
            self._breakers[source] = self._new()
        return self._breakers[source]
