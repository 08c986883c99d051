"""Who fails again and again is left alone for a while, then asked once whether it is back.

Nygard: "Release It!", 2007, chapter 5: closed, open, half-open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

State: TypeAlias = Literal["closed", "open", "half-open"]


class Breaker:
    """Opens after ``failures`` in a row; ``pause_s`` seconds later one call is let through, to see.

    :param clock: seconds, from anywhere, never going back.
    """

    def __init__(self, failures: int, pause_s: float, clock: Callable[[], float]) -> None:
        self._most = failures
        self._pause_s = pause_s
        self._clock = clock
        self._failed = 0
        self._opened: float | None = None
        self._probing = False

    @property
    def state(self) -> State:
        """``closed``: all calls pass. ``open``: none. ``half-open``: the next one, or the one that is under way."""
        if self._opened is None:
            return "closed"
        return "half-open" if self._probing or self._clock() - self._opened >= self._pause_s else "open"

    def allows(self) -> bool:
        """Whether a call may be made now. Who is allowed must say how it went."""
        match self.state:
            case "closed":
                return True
            case "half-open" if not self._probing:
                self._probing = True
                return True
            case _:
                return False

    def succeeded(self) -> None:
        """A call went well. One that began before the breaker opened says nothing of how it is now."""
        if self._opened is not None and not self._probing:
            return
        self._failed = 0
        self._opened = None
        self._probing = False

    def failed(self) -> None:
        """A call did not."""
        self._failed += 1
        if self._probing or self._failed >= self._most:
            self._opened = self._clock()
        self._probing = False

    def abandoned(self) -> None:
        """A call was given up by who made it, and says nothing."""
        self._probing = False
