"""Searches that wait, each in a task, under one deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from orchestrator.execution.stage_results import TIMED_OUT, Failed, Outcome


class DeadlineTasks:
    """Runs searches. It references cancelled ones until they have ended: the event loop does so only weakly."""

    def __init__(self) -> None:
        self._cancelled: set[asyncio.Task[Outcome]] = set()

    @contextmanager
    def started(self, searches: Mapping[str, Coroutine[Any, Any, Outcome]], timeout_s: float) -> Iterator[StartedTasks]:
        """The searches, running. Those that have not ended at the end are cancelled, and not waited for: one that is
        slow to end would cost more than its deadline, which is why this is no task group."""
        tasks = {source: asyncio.create_task(search) for source, search in searches.items()}
        try:
            yield StartedTasks(tasks, timeout_s)
        finally:
            for task in tasks.values():
                if not task.done():
                    task.cancel()
                    self._cancelled.add(task)
                    task.add_done_callback(self._cancelled.discard)


class StartedTasks:
    """Searches that are running, by source."""

    def __init__(self, tasks: Mapping[str, asyncio.Task[Outcome]], timeout_s: float) -> None:
        self._tasks = tasks
        self._start = perf_counter()
        self._now = asyncio.get_running_loop().time
        self._ends_at = self._now() + timeout_s

    async def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each, in the order in which they were given; a :class:`Failed` for one that timed out."""
        if not self._tasks:
            return {}
        await asyncio.wait(self._tasks.values(), timeout=max(self._ends_at - self._now(), 0.0))
        elapsed_ms = (perf_counter() - self._start) * 1_000
        return {
            source: task.result() if task.done() else Failed(source, TIMED_OUT, elapsed_ms)
            for source, task in self._tasks.items()
        }
