"""Statements that the server plans before searches use them.

Planning a walk takes a server up to seconds when it has just started, longer than a search may take; and a plan that is
not finished is not kept. So a statement is planned by a read of its own, which no search waits for.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from adapters.graph.batched_reads import BatchedReads
from adapters.graph.bolt import Bolt, Row
from adapters.model.errors import AdapterError, TimedOut, Unavailable, Warming

_log = logging.getLogger(__name__)

_WAIT = 0.5
"""Fraction of the time limit of a search, after the beginning of planning, for which searches wait for the plan."""


class PlannedReads:
    """Batched reads with statements that the server has planned, as far as is known here.

    A server that is stopped loses its plans. That is noticed by a lost connection, or by a read that takes too long.
    """

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt
        self._reads = BatchedReads(bolt)
        self._planned: set[str] = set()
        self._planning: dict[str, asyncio.Task[AdapterError | None]] = {}
        self._started_at: dict[str, float] = {}
        self._slow: set[str] = set()
        """Statements whose last read was cancelled."""

    @property
    def is_planning(self) -> bool:
        """Whether the server is planning a statement now."""
        return bool(self._planning)

    async def read(self, statement: str, request: Row, common: Row) -> Row:
        """See :meth:`BatchedReads.read`.

        :raises Warming: if the server has yet to plan the statement; that goes on.
        :raises AdapterError: as :meth:`BatchedReads.read`.
        """
        if statement not in self._planned:
            planning = self._plan(statement, request, common)
            waited_s = monotonic() - self._started_at[statement]
            await asyncio.wait({planning}, timeout=max(0.0, _WAIT * self._bolt.read_timeout_s - waited_s))
            if not planning.done():
                raise Warming("the graph server is planning its statements: try again soon")
            if error := planning.result():
                raise error
        try:
            row = await self._reads.read(statement, request, common)
        except (Unavailable, TimedOut):
            self.forget()
            raise
        except asyncio.CancelledError:  # it took too long
            if statement in self._slow:  # again: after many writes a server plans a statement anew
                self._planned.discard(statement)
            self._slow.add(statement)
            raise
        self._slow.discard(statement)
        return row

    def has_planned(self, statement: str) -> bool:
        """Whether the server has planned a statement, as far as is known here."""
        return statement in self._planned

    def start_planning(self, statement: str, request: Row, common: Row) -> None:
        """Have the server plan a statement, unless it has, or is doing it.

        :param request: parameters as those of :meth:`read`, for which there is nothing to find.
        """
        if statement not in self._planned:
            self._plan(statement, request, common)

    def forget(self) -> None:
        """Take no statement for planned: the server may have been stopped."""
        self._planned.clear()

    async def close(self) -> None:
        """Stop planning."""
        planning = list(self._planning.values())
        for task in planning:
            task.cancel()
        await asyncio.gather(*planning, return_exceptions=True)

    def _plan(self, statement: str, request: Row, common: Row) -> asyncio.Task[AdapterError | None]:
        if statement not in self._planning:
            self._started_at[statement] = monotonic()
            task = self._planning[statement] = asyncio.create_task(self._read_once(statement, request, common))
            task.add_done_callback(lambda _: self._planning.pop(statement, None))
        return self._planning[statement]

    async def _read_once(self, statement: str, request: Row, common: Row) -> AdapterError | None:
        """Read for the plan. Returns why it failed."""
        try:
            await self._bolt.read(statement, {"requests": [{"number": 0, **request}], **common}, planning=True)
        except AdapterError as error:
            _log.warning("the graph server did not plan a statement: %s", error.for_operators)
            return error
        self._planned.add(statement)
        return None
