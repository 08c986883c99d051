"""Background tasks of a running service: each is an endless coroutine."""

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
from orchestrator.service.replica_counts import ReplicaCounts
from orchestrator.service.upkeep import Upkeep
from orchestrator.settings.backends import WriteSettings
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import environment_of

_log = logging.getLogger(__name__)

_MEASURE_S, _PAUSE_S = 0.1, 3.9
"""Seconds that the measuring process alternately runs and is stopped: it uses a fortieth of the time of its cores."""
_COUNT_S = 60.0
"""Seconds between two counts of the documents of each replica: a graph server reads all of them."""
_UPKEEP_CHECK_S = 2.0
"""Maximum number of seconds between two checks whether upkeep is due."""

BackgroundTask: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""A coroutine function that runs until it is cancelled."""


def follow(refresh: Callable[[], None], interval_s: float) -> BackgroundTask:
    """Call a blocking ``refresh`` periodically in a thread. Errors are logged."""

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
    """Run ``trivium tidy --measure`` with these settings and return its exit code. Cancelling it kills the process.

    The process is stopped for most of the time. A low priority alone is not enough: the process would occupy the caches
    of the processor, which raises the p95 of searches by half. It has its own process group, because the kernel ends a
    stopped group whose parent has ended (POSIX.1, ``_exit()``).
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
    """Await ``work`` periodically. Errors are logged."""

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
    replica_counts: ReplicaCounts | None,
    counters: InvalidationCounters | None,
) -> tuple[BackgroundTask, ...]:
    """The background tasks of a service.

    :param replica_counts: ``None`` if there is no write log to apply.
    """
    interval_s = writes.refresh_interval_ms / 1_000
    tasks = [follow(maintenance.refresh, interval_s)]
    if keyring:
        # A task of its own, so that revoking a key does not wait for the other files.
        tasks.append(follow(keyring.refresh, interval_s))
    if replica_counts:
        retry_s = writes.replication_retry_ms / 1_000
        tasks.append(repeat(maintenance.apply_unapplied, retry_s, "applying waiting writes"))
        tasks.append(repeat(replica_counts.check, _COUNT_S, "counting the documents of each replica"))
    if counters:
        tasks.append(counters.run)
    if writes.upkeep_interval_s:
        tasks.append(repeat(upkeep.check, min(_UPKEEP_CHECK_S, writes.upkeep_interval_s), "upkeep"))
    return tuple(tasks)
