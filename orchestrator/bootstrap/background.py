"""What runs beside the requests while the service serves: an endless coroutine for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import anyio.to_thread

_log = logging.getLogger(__name__)

BackgroundTask: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs until it is cancelled."""


def follow(refresh: Callable[[], None], interval_s: float) -> BackgroundTask:
    """Calls a blocking ``refresh`` again and again, in a thread. Errors are logged; what is open stays open."""

    async def run() -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await anyio.to_thread.run_sync(refresh)
            except Exception:
                _log.exception("reading what another process has written failed")

    return run


def repeat(work: Callable[[], Awaitable[None]], interval_s: float, description: str) -> BackgroundTask:
    """Awaits ``work`` again and again. Errors are logged."""

    async def run() -> None:
        while True:
            try:
                await work()
            except Exception:
                _log.exception("%s failed", description)
            await asyncio.sleep(interval_s)

    return run
