"""What all stages of one request share: its deadline and its timings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf

from adapters import AdapterError
from orchestrator.execution.budget import Deadline
from orchestrator.execution.stage_results import AllSourcesFailed, Failed, logged_reason
from orchestrator.schema.search import Degraded
from orchestrator.telemetry.spans import MS_DIGITS, StageTimings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SearchContext:
    """The deadline of a request and the time spent so far."""

    deadline: Deadline
    timings: StageTimings

    def degraded(self, stage: str, reason: str) -> Degraded:
        """The report that a source or a stage failed."""
        return Degraded(stage, reason, round(self.timings.total_ms(), MS_DIGITS))

    @asynccontextmanager
    async def best_effort(self, stage: str, fraction: float, max_s: float = inf) -> AsyncIterator[Attempt]:
        """An optional stage. If it fails, :attr:`Attempt.failures` reports it.

        :param fraction: of the remaining time, see :mod:`orchestrator.execution.budget`.
        :param max_s: seconds that it may take at most.
        """
        attempt = Attempt()
        try:
            async with asyncio.timeout(self.deadline.within(fraction, max_s).remaining_s()):
                yield attempt
        except (TimeoutError, AdapterError) as error:
            attempt.failures.append(self.degraded(stage, logged_reason(stage, error)))
        except Exception:
            # A defect in an optional stage must not fail the whole response; the log has the trace.
            _log.exception("the stage %s failed", stage)
            attempt.failures.append(self.degraded(stage, "internal error"))

    @asynccontextmanager
    async def reading_documents(self, deadline: Deadline) -> AsyncIterator[None]:
        """A stage that reads documents which the response cannot do without.

        :raises AllSourcesFailed: if they cannot be read before the deadline.
        """
        try:
            async with asyncio.timeout(deadline.remaining_s()):
                yield
        except (TimeoutError, AdapterError) as error:
            reason = logged_reason("reading documents", error)
            raise AllSourcesFailed((Failed("documents", reason, self.timings.total_ms()),)) from error


@dataclass(slots=True)
class Attempt:
    """The reports of one optional stage: empty if it succeeded."""

    failures: list[Degraded] = field(default_factory=list)
