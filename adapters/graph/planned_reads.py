"""Statements that the server is prepared for before searches use them.

Planning a walk takes a server up to seconds when it has just started, longer than a search may take; and a plan that is
not finished is not kept. So a statement is planned by a read of its own, which no search waits for. A server in Java
is slow for some seconds more, until it has compiled its code: the read is repeated until it is fast, unless the first
one was as fast as a search has to be. Then the server had its plan, and only the connection was lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from time import monotonic

from adapters.graph.batched_reads import BatchedReads
from adapters.graph.bolt import Bolt, Row
from adapters.model.errors import AdapterError, TimedOut, Unavailable, Warming

_log = logging.getLogger(__name__)

_WAIT = 0.5
"""Fraction of the time limit of a search, after the beginning of planning, for which searches wait for the plan."""
_FAST = 1 / 6
"""Fraction of the time limit of a search in which a read is fast: a search needs several, one after the other."""
_MAX_WARM_UPS = 100
"""Maximum number of reads of a statement before searches use it, however slow they are."""
_SECOND_AFTER_S = 2.0
"""Seconds after which a read for a plan is sent again on another connection: the first one may hang, and its time limit
is long. A server that has run the statement is expected to answer within the time limit of a search."""
_SAMPLES = 8
"""Requests that are read again to warm the server up."""


class PlannedReads:
    """Batched reads with statements that the server has planned, as far as is known here.

    A server that is stopped loses its plans, which is noticed by the lost connection.
    """

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt
        self._reads: defaultdict[str, BatchedReads] = defaultdict(lambda: BatchedReads(bolt))
        self._planned: set[str] = set()
        self._warm: set[str] = set()
        """Statements that the server has run often enough since its start."""
        self._planning: dict[str, asyncio.Task[AdapterError | None]] = {}
        self._started_at: dict[str, float] = {}
        self._newest: defaultdict[str, deque[tuple[Row, Row]]] = defaultdict(lambda: deque(maxlen=_SAMPLES))
        """The parameters of the newest reads of each statement."""
        self._slow: set[str] = set()
        """Statements whose last read took too long."""

    @property
    def is_planning(self) -> bool:
        """Whether the server is planning a statement now."""
        return bool(self._planning)

    async def read(self, statement: str, request: Row, common: Row) -> Row:
        """See :meth:`BatchedReads.read`.

        :raises Warming: if the server has yet to plan the statement; that goes on.
        :raises AdapterError: as :meth:`BatchedReads.read`.
        """
        self._newest[statement].append((request, common))
        if statement not in self._planned:
            planning = self._plan(statement, request, common)
            waited_s = monotonic() - self._started_at[statement]
            await asyncio.wait({planning}, timeout=max(0.0, _WAIT * self._bolt.read_timeout_s - waited_s))
            if not planning.done():
                raise Warming("the graph server is planning its statements: try again soon")
            if error := planning.result():
                raise error
        try:
            row = await self._reads[statement].read(statement, request, common)
        except Unavailable:
            self.forget()
            raise
        except (TimedOut, asyncio.CancelledError):  # it took too long
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
        self._warm.clear()

    async def close(self) -> None:
        """Stop planning."""
        planning = list(self._planning.values())
        for task in planning:
            task.cancel()
        await asyncio.gather(*planning, return_exceptions=True)

    def _plan(self, statement: str, request: Row, common: Row) -> asyncio.Task[AdapterError | None]:
        if statement not in self._planning:
            self._started_at[statement] = monotonic()
            task = self._planning[statement] = asyncio.create_task(self._prepare(statement, request, common))
            task.add_done_callback(lambda _: self._planning.pop(statement, None))
        return self._planning[statement]

    async def _prepare(self, statement: str, request: Row, common: Row) -> AdapterError | None:
        """Read for the plan; after a start of the server, until the newest requests are fast. Returns why it failed."""
        fast, limit_s = 0, self._bolt.read_timeout_s
        try:
            for number in range(1 if statement in self._warm else _MAX_WARM_UPS):
                newest = self._newest[statement]
                request, common = newest[number % len(newest)] if newest else (request, common)
                begin = monotonic()
                await self._read_twice(statement, {"requests": [{"number": 0, **request}], **common})
                took_s = monotonic() - begin
                fast = fast + 1 if took_s <= _FAST * limit_s else 0
                if fast >= max(1, len(newest)) or (number == 0 and took_s <= limit_s):
                    break
        except AdapterError as error:
            if not isinstance(error, Unavailable):  # that one is reported by every search
                _log.warning("the graph server did not plan a statement: %s", error.for_operators)
            return error
        self._planned.add(statement)
        self._warm.add(statement)
        return None

    async def _read_twice(self, statement: str, parameters: Row) -> None:
        """Read for a plan; a second time if that takes long, and until one of the two has ended.

        :raises AdapterError: if the one that ended first has failed.
        """
        wait_s = self._bolt.read_timeout_s if statement in self._warm else _SECOND_AFTER_S
        reads: set[asyncio.Task[list[Row]]] = set()
        try:
            for timeout_s in (wait_s, None):
                reads.add(asyncio.create_task(self._bolt.read(statement, parameters, planning=True)))
                done, _ = await asyncio.wait(reads, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    done.pop().result()
                    return
        finally:
            for each in reads:
                each.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
