"""The end of a process, seen from outside: it says that it is not ready, goes on for a while, and only then stops."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def drained(begin: Callable[[], None], seconds: float) -> Iterator[None]:
    """Inside, SIGTERM calls ``begin`` at once, and ``seconds`` later whoever handled it before.

    Who sends requests sees in that time that it should send them elsewhere. A second SIGTERM changes nothing: some
    supervisors tell a process and its parent, which tells it again. SIGINT stays as it is: whoever pressed Ctrl-C waits
    for nothing else.
    """
    if threading.current_thread() is not threading.main_thread():  # where no signals come
        yield
        return
    loop = asyncio.get_running_loop()
    stop = signal.getsignal(signal.SIGTERM)
    begun = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal begun
        if begun:
            return
        begun = True
        begin()
        loop.call_soon_threadsafe(loop.call_later, seconds, end, number, frame)

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, stop)
        if callable(stop):
            stop(number, frame)
        else:
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, stop)
