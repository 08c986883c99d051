"""Automatic upkeep: after writes, the documents are measured again in another process.

These measurements are the centralities, the static encoder, the trust of the graph and the calibration of confidence.
The process has the lowest priority, so that searches do not wait for it; in this process it would compete for the GIL.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path
from time import time

import anyio.to_thread

from adapters.storage import files
from orchestrator.service.maintenance import MaintenanceService

_log = logging.getLogger(__name__)

LOCK_FILE = "upkeep.lock"
"""Name of the lock in the data folder: one process at a time measures."""


_MIN_INTERVAL_S, _DOCUMENTS_PER_S = 5.0, 50.0
"""Minimum seconds between two measurements of few documents, and by how many documents these become a second more."""


class Upkeep:
    """Starts the measurement when it is due.

    :param folder: the data folder.
    :param interval_s: minimum number of seconds between two measurements; 0 disables them.
    :param measure: runs the measurement in another process; returns the process's exit code.
    :param documents: their number: few are measured soon after a write, because that takes a second or two.
    :param now: seconds since the epoch.
    """

    def __init__(
        self,
        maintenance: MaintenanceService,
        folder: Path,
        interval_s: float,
        measure: Callable[[], Awaitable[int]],
        now: Callable[[], float] = time,
        documents: Callable[[], float] = lambda: inf,
    ) -> None:
        self.state = "idle" if interval_s else "off"
        self._maintenance = maintenance
        self._lock = folder / LOCK_FILE
        self._interval_s = interval_s
        self._measure = measure
        self._now = now
        self._documents = documents
        self._tried_at = 0.0

    async def check(self) -> None:
        """Measure if it is due and no other process measures. Returns when the measurement has ended."""
        if not await anyio.to_thread.run_sync(self._is_due):
            return
        with files.exclusive_now(self._lock) as has_lock:
            # Checked again: another process may have measured before this one got the lock.
            if not has_lock or not await anyio.to_thread.run_sync(self._is_due):
                return
            self._tried_at = self._now()
            self.state = "running"
            _log.info("upkeep: measuring the documents again")
            try:
                code = await self._measure()
            except BaseException:
                self.state = "idle"
                raise
            self.state = f"failed with exit code {code}" if code else "idle"
            log = _log.error if code else _log.info
            log("upkeep: ended with exit code %d after %.1f s", code, self._now() - self._tried_at)

    def _is_due(self) -> bool:
        """Whether there are writes since the last measurement, and that was long enough ago."""
        if not self._interval_s or not self._maintenance.outdated():
            return False
        if not os.access(self._lock.parent, os.W_OK):
            return False  # a process that may write measures
        last = max(self._maintenance.calibrations.measured_at(), self._tried_at)
        interval_s = min(self._interval_s, max(_MIN_INTERVAL_S, self._documents() / _DOCUMENTS_PER_S))
        return self._now() - last >= interval_s
