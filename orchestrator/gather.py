"""The only concurrency of a request: every road at once, each under its own deadline."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import TypeAlias

import anyio

from adapters import AdapterError
from fusion import Ranking
from orchestrator.outcome import Answered, Failed, Outcome

_log = logging.getLogger(__name__)

Road: TypeAlias = Callable[[], Awaitable[Ranking]]
"""Asks one source; cancelled when its time is up."""


async def gather(roads: Mapping[str, Road], timeout_s: float) -> dict[str, Outcome]:
    """Ask all; what has not answered after ``timeout_s`` seconds is cancelled and becomes a :class:`Failed`.

    The outcomes stand in the order of ``roads``, whatever order they came in.
    """
    outcomes: dict[str, Outcome] = {}
    async with anyio.create_task_group() as group:
        for source, road in roads.items():
            group.start_soon(_ask, source, road, timeout_s, outcomes)
    return {source: outcomes[source] for source in roads}


async def _ask(source: str, road: Road, timeout_s: float, outcomes: dict[str, Outcome]) -> None:
    began = perf_counter()
    try:
        with anyio.fail_after(timeout_s):
            ranking = await road()
        outcomes[source] = Answered(ranking, _ms_since(began))
    except TimeoutError:
        outcomes[source] = Failed(source, "timed out", _ms_since(began))
    except AdapterError as error:
        outcomes[source] = Failed(source, str(error), _ms_since(began))
    except Exception:
        # A defect in one adapter must not take the other sources' answers with it; the log has the trace.
        _log.exception("the %s source raised what it may not raise", source)
        outcomes[source] = Failed(source, "internal error", _ms_since(began))


def _ms_since(began: float) -> float:
    return (perf_counter() - began) * 1_000
