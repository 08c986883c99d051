"""What runs beside the requests while the service serves: an endless coroutine for each."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import anyio.to_thread

from adapters import AdapterError
from cache import InvalidationCounters
from orchestrator.auth.keyring import Keyring
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.upkeep import Upkeep
from orchestrator.settings.backends import WriteSettings
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import environment_of

_log = logging.getLogger(__name__)

_MEASURE_S, _PAUSE_S = 0.1, 3.9
"""How long the measuring process runs and is stopped in turn: a fortieth of the time of a core or two."""
_UPKEEP_CHECK_S = 10.0
"""Seconds between two questions whether upkeep is due, at most."""

BackgroundTask: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs until it is cancelled."""


def follow(refresh: Callable[[], None], interval_s: float) -> BackgroundTask:
    """Calls a blocking ``refresh`` again and again, in a thread. Errors are logged; what is open stays open."""

    async def run() -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await anyio.to_thread.run_sync(refresh)
            except Exception as error:
                reason = error.for_operators if isinstance(error, AdapterError) else type(error).__name__
                _log.exception("reading what another process has written failed: %s", reason)

    return run


async def measure_in_process(settings: Settings) -> int:
    """Run ``trivium tidy --measure`` with these settings; its exit code. If this is cancelled, the process is killed.

    The process runs for a moment and is stopped for a long one, in turn. A low priority is not enough: it occupies the
    caches of the processor, which made the p95 of searches half as long again. In a process group of its own, because
    the kernel ends a stopped group that has lost its parent (POSIX.1, ``_exit()``).
    """
    process = await anyio.to_thread.run_sync(_start_measuring, settings)
    try:
        while (code := process.poll()) is None:
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(_MEASURE_S)
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(_PAUSE_S)
        return code
    finally:
        process.kill()
        process.wait()


def _start_measuring(settings: Settings) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        (sys.executable, "-m", "orchestrator", "tidy", "--measure"),
        env={**os.environ, **environment_of(settings)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )


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


def background_tasks(
    writes: WriteSettings,
    maintenance: MaintenanceService,
    upkeep: Upkeep,
    keyring: Keyring | None,
    has_replicas: bool,
    counters: InvalidationCounters | None,
) -> tuple[BackgroundTask, ...]:
    """Everything that runs beside the requests.

    :param has_replicas: whether there is a write log to apply.
    """
    interval_s = writes.refresh_interval_ms / 1_000
    tasks = [follow(maintenance.refresh, interval_s)]
    if keyring:
        # By itself: revoking a key does not wait until everything else has been read.
        tasks.append(follow(keyring.refresh, interval_s))
    if has_replicas:
        retry_s = writes.replication_retry_ms / 1_000
        tasks.append(repeat(maintenance.apply_unapplied, retry_s, "applying waiting writes"))
    if counters:
        tasks.append(counters.run)
    if writes.upkeep_interval_s:
        tasks.append(repeat(upkeep.check, min(_UPKEEP_CHECK_S, writes.upkeep_interval_s), "upkeep"))
    return tuple(tasks)
