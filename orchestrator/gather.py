"""The only concurrency of a request: every road at once, each under its own deadline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeAlias

from adapters import AdapterError, Rejected
from fusion import Ranking
from orchestrator.outcome import Answered, Failed, Outcome

_log = logging.getLogger(__name__)

Road: TypeAlias = Callable[[], Coroutine[Any, Any, Ranking]]
"""Asks one source; cancelled when its time is up."""

_abandoned: set[asyncio.Task[Outcome]] = set()
"""Sources that are being cancelled. Held until they have ended, for the event loop holds its tasks weakly."""


async def gather(roads: Mapping[str, Road], timeout_s: float) -> dict[str, Outcome]:
    """Ask all; what has not answered after ``timeout_s`` seconds is cancelled and becomes a :class:`Failed`.

    The outcomes stand in the order of ``roads``, whatever order they came in. Not a task group: that would wait
    for a late source to have ended, and one that is slow to be cancelled would cost more than its deadline.
    """
    began = perf_counter()
    tasks = {source: asyncio.create_task(_ask(source, road)) for source, road in roads.items()}
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=timeout_s)
        late_ms = (perf_counter() - began) * 1_000
        return {
            source: task.result() if task.done() else Failed(source, "timed out", late_ms)
            for source, task in tasks.items()
        }
    finally:
        for task in tasks.values():
            if not task.done():
                _abandon(task)


def agree(rankings: Sequence[Ranking]) -> bool:
    """Whether there are several, and all have the same document first."""
    return len(rankings) > 1 and len({ranking.ids[:1] for ranking in rankings}) == 1 and len(rankings[0]) > 0


async def _ask(source: str, road: Road) -> Outcome:
    began = perf_counter()
    try:
        ranking = await road()
    except AdapterError as error:
        return Failed(source, str(error), (perf_counter() - began) * 1_000, ours=isinstance(error, Rejected))
    except Exception:
        # A defect in one adapter must not take the other sources' answers with it; the log has the trace.
        _log.exception("the %s source raised what it may not raise", source)
        return Failed(source, "internal error", (perf_counter() - began) * 1_000)
    return Answered(ranking)


def _abandon(task: asyncio.Task[Outcome]) -> None:
    task.cancel()
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)
