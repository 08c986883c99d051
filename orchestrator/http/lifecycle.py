"""Graceful shutdown: the process reports that it is not ready, accepts requests for a while, and then stops."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def drain_on_sigterm(start_draining: Callable[[], None], drain_s: float) -> Iterator[None]:
    """Inside, SIGTERM calls ``start_draining`` at once, and the previous handler ``drain_s`` seconds later.

    In that time load balancers stop sending requests. A second SIGTERM has no effect: some supervisors signal a process
    and its parent, which signals it again. SIGINT is not changed: Ctrl-C stops at once.
    """
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield
        return
    loop = asyncio.get_running_loop()
    previous = signal.getsignal(signal.SIGTERM)
    is_draining = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_draining
        if is_draining:
            return
        is_draining = True
        start_draining()
        loop.call_soon_threadsafe(loop.call_later, drain_s, stop, number, frame)

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, previous)
        if callable(previous):
            previous(number, frame)
        else:
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
