"""The only concurrency of a request: all searches of a stage at once, each under the same deadline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from time import perf_counter
from typing import Any, TypeAlias

from adapters import AdapterError, Rejected
from fusion import Ranking
from orchestrator.planning.stage_results import TIMED_OUT, Answered, Failed, Outcome

_log = logging.getLogger(__name__)

Search: TypeAlias = Callable[[], Coroutine[Any, Any, Ranking]]
"""Searches one source; cancelled when its time is up."""


class FanOut:
    """Runs searches. It references cancelled ones until they have ended: the event loop does so only weakly."""

    def __init__(self) -> None:
        self._cancelled: set[asyncio.Task[Outcome]] = set()

    async def run(self, searches: Mapping[str, Search], timeout_s: float) -> dict[str, Outcome]:
        """Run all; a search that has not ended after ``timeout_s`` is cancelled and becomes a :class:`Failed`.

        The outcomes are in the order of ``searches``, whatever order they came in. Not a task group: it would wait for
        the end of a cancelled search, and one that is slow to end would cost more than its deadline.
        """
        start = perf_counter()
        tasks = {source: asyncio.create_task(_run(source, search)) for source, search in searches.items()}
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=timeout_s)
            elapsed_ms = (perf_counter() - start) * 1_000
            return {
                source: task.result() if task.done() else Failed(source, TIMED_OUT, elapsed_ms)
                for source, task in tasks.items()
            }
        finally:
            for task in tasks.values():
                if not task.done():
                    self._cancel(task)

    def _cancel(self, task: asyncio.Task[Outcome]) -> None:
        task.cancel()
        self._cancelled.add(task)
        task.add_done_callback(self._cancelled.discard)


async def _run(source: str, search: Search) -> Outcome:
    start = perf_counter()
    try:
        return Answered(await search())
    except AdapterError as error:
        elapsed_ms = (perf_counter() - start) * 1_000
        return Failed(source, str(error), elapsed_ms, caused_by_request=isinstance(error, Rejected))
    except Exception:
        # A defect in one adapter must not fail the other sources; the log has the trace.
        _log.exception("the %s source raised an unexpected error", source)
        return Failed(source, "internal error", (perf_counter() - start) * 1_000)
