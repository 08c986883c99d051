"""A circuit breaker: after several failures in a row no call is made for a while, then one call tests for recovery.

Nygard: "Release It!", 2007, chapter 5: closed, open, half-open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

State: TypeAlias = Literal["closed", "open", "half-open"]

_InternalState: TypeAlias = Literal["closed", "open", "half-open", "probing"]
_Event: TypeAlias = Literal["limit reached", "reset due", "probe started", "succeeded", "failed", "abandoned"]

# An event that is not listed for a state changes nothing there. Calls that began before the circuit opened may end in
# any state: their success is ignored while the circuit is open, their failure restarts the wait.
_TRANSITIONS: Mapping[tuple[_InternalState, _Event], _InternalState] = {
    ("closed", "limit reached"): "open",
    ("open", "failed"): "open",
    ("open", "reset due"): "half-open",
    ("half-open", "failed"): "open",
    ("half-open", "probe started"): "probing",
    ("probing", "failed"): "open",
    ("probing", "succeeded"): "closed",
    ("probing", "abandoned"): "half-open",
}


class CircuitBreaker:
    """Opens after ``max_failures`` failures in a row; ``reset_s`` seconds later one probe call is allowed.

    :param clock: seconds from any origin, never decreasing.
    """

    def __init__(self, max_failures: int, reset_s: float, clock: Callable[[], float]) -> None:
        self._max_failures = max_failures
        self._reset_s = reset_s
        self._clock = clock
        self._state: _InternalState = "closed"
        self._failures = 0
        self._opened_at = 0.0

    @property
    def state(self) -> State:
        """``closed``: all calls are allowed. ``open``: none. ``half-open``: one probe is allowed or under way."""
        current = self._current()
        return "half-open" if current == "probing" else current

    def allows(self) -> bool:
        """Whether a call may be made now.

        After ``True`` the caller must report how the call ended: ``succeeded()``, ``failed()`` or ``abandoned()``.
        """
        current = self._current()
        self._apply("probe started")
        return current in {"closed", "half-open"}

    def succeeded(self) -> None:
        """Report that a call succeeded."""
        self._apply("succeeded")
        if self._state == "closed":
            self._failures = 0

    def failed(self) -> None:
        """Report that a call failed."""
        self._failures += 1
        self._apply("failed")
        if self._failures >= self._max_failures:
            self._apply("limit reached")

    def abandoned(self) -> None:
        """Report that the caller cancelled a call before its outcome was known."""
        self._apply("abandoned")

    def _current(self) -> _InternalState:
        if self._state == "open" and self._clock() - self._opened_at >= self._reset_s:
            self._apply("reset due")
        return self._state

    def _apply(self, event: _Event) -> None:
        following = _TRANSITIONS.get((self._state, event))
        if following is None:
            return
        self._state = following
        if following == "open":
            self._opened_at = self._clock()
