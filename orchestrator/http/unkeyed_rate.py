"""A rate for requests without a valid key, so that they leave time for those that have one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

MAX_PER_S = 100
"""Requests a second that are answered at once."""
DELAY_S = 1.0
"""Seconds by which the others are answered later: each connection has one request at a time, so it gets one response
a second."""


class UnkeyedRate:
    """A token bucket (Turner, "New Directions in Communications", 1986).

    :param clock: seconds from any origin, never going back.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._tokens = float(MAX_PER_S)
        self._counted_at = clock()

    def is_exceeded(self) -> bool:
        """Count one request. Returns whether it has to be answered later."""
        now = self._clock()
        self._tokens = min(MAX_PER_S, self._tokens + (now - self._counted_at) * MAX_PER_S)
        self._counted_at = now
        if self._tokens < 1:
            return True
        self._tokens -= 1
        return False

    async def wait(self) -> None:
        """Wait until a request beyond the rate may be answered."""
        await asyncio.sleep(DELAY_S)
