"""Runs all searches of a stage concurrently, under one deadline. A request has no other concurrency.

A search that never waits, as those of the embedded engine, runs while the others wait, without a task of its own. It
blocks the event loop, so there is an event loop iteration before each such search and each of its collections: in it,
admission queues or rejects the requests that have arrived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from adapters import AdapterError, Rejected
from fusion import Ranking
from orchestrator.stages.stage_results import TIMED_OUT, Answered, Failed, Outcome, logged_reason

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Search:
    """A search of one source.

    :param run: cancelled at the deadline.
    :param waits: whether it may wait for more than an event loop iteration. Otherwise no deadline ends it.
    """

    run: Callable[[], Coroutine[Any, Any, Ranking]]
    waits: bool = True


class FanOut:
    """Runs searches. It references cancelled ones until they have ended: the event loop does so only weakly."""

    def __init__(self) -> None:
        self._cancelled: set[asyncio.Task[Outcome]] = set()

    async def run(self, searches: Mapping[str, Search], timeout_s: float) -> dict[str, Outcome]:
        """Run all; a search that has not ended after ``timeout_s`` is cancelled and becomes a :class:`Failed`.

        The outcomes are in the order of ``searches``. This is not a task group, because that would wait for the end of
        a cancelled search, after the deadline.
        """
        start, now = perf_counter(), asyncio.get_running_loop().time
        ends_at = now() + timeout_s
        tasks = {
            source: asyncio.create_task(_run(source, search)) for source, search in searches.items() if search.waits
        }
        try:
            outcomes = {}
            for source, search in searches.items():
                if not search.waits:
                    await asyncio.sleep(0)
                    outcomes[source] = await _run_here(source, search)
            if tasks:
                await asyncio.wait(tasks.values(), timeout=max(ends_at - now(), 0.0))
            elapsed_ms = (perf_counter() - start) * 1_000
            for source, task in tasks.items():
                outcomes[source] = task.result() if task.done() else Failed(source, TIMED_OUT, elapsed_ms)
            return {source: outcomes[source] for source in searches}
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
        return Answered(await search.run())
    except AdapterError as error:
        elapsed_ms = (perf_counter() - start) * 1_000
        return Failed(source, logged_reason(source, error), elapsed_ms, caused_by_request=isinstance(error, Rejected))
    except Exception:
        # A defect in one adapter must not fail the other sources; the log has the trace.
        _log.exception("the %s source raised an unexpected error", source)
        return Failed(source, "internal error", (perf_counter() - start) * 1_000)


async def _run_here(source: str, search: Search) -> Outcome:
    """The outcome of a search that waits for event loop iterations only."""
    running = _run(source, search)
    try:
        while running.send(None) is None:  # noqa: ASYNC110  # it awaited ``asyncio.sleep(0)``
            await asyncio.sleep(0)
    except StopIteration as stopped:
        outcome: Outcome = stopped.value
        return outcome
    finally:
        running.close()
    _log.error("the %s source waited, although it is declared as never waiting", source)
    return Failed(source, "internal error", 0.0)
