"""An event loop whose clock is moved by its timers: tests of time limits wait for nothing, and are exact.

For code without threads and sockets: while nothing is ready to run, the clock moves to the next timer.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """A loop that starts at 0 s."""

    def __init__(self) -> None:
        self.now_s = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self.now_s


class _Selector(selectors.SelectSelector):
    """Moves the clock instead of waiting."""

    def __init__(self, loop: VirtualClockLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now; if nothing is, the clock moves by ``timeout``.

        :raises RuntimeError: if there is no timer either, so that the test would never end.
        """
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits, and there is no timer that could wake one")
            self._loop.now_s += max(timeout, 0.0)
        return ready


def run(main: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine on a loop with a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)
