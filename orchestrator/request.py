"""One request on its way: what was planned, what time is left, what went wrong so far."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf

import anyio

from adapters import AdapterError
from orchestrator.contract import Degraded
from orchestrator.plan import Plan
from orchestrator.timing import Stopwatch

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """What the stages of one request share.

    ``in_flight``: requests under way or waiting when it came, itself included: what came later is no reason to serve it
    worse.
    """

    plan: Plan
    timeout_s: float
    in_flight: int
    watch: Stopwatch
    encoder: str = "none"
    expansions: tuple[str, ...] = ()
    fused_by: str = ""
    degraded: list[Degraded] = field(default_factory=list)

    def left_s(self) -> float:
        """Seconds until its deadline, never quite none: what is ready needs no time to be taken."""
        return max(self.timeout_s - self.watch.total_ms() / 1_000, 0.001)

    def degrade(self, stage: str, reason: str) -> None:
        """Note that a source or a stage did not do its part."""
        self.degraded.append(Degraded(stage, reason, self.watch.total_ms()))

    @asynccontextmanager
    async def optional(self, stage: str, share: float = 1.0, seconds: float = inf) -> AsyncIterator[None]:
        """Around what the answer can do without; failing, it is told.

        :param share: of the time that is left, what it may take: the rest is for what comes after it.
        :param seconds: what it may take at most.
        """
        try:
            with anyio.fail_after(min(seconds, share * self.left_s())):
                yield
        except (TimeoutError, AdapterError) as error:
            self.degrade(stage, told(error))
        except Exception:
            # A defect in what the answer can do without must not take the answer with it; the log has the trace.
            _log.exception("the stage %s failed", stage)
            self.degrade(stage, "internal error")


def told(error: BaseException) -> str:
    """An error in words: a time limit of ours has none of its own."""
    return str(error) or "timed out"
