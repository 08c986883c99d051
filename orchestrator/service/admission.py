"""Admission control: a concurrency limit, one fair queue per tenant, and immediate rejection of requests that would
wait too long.

The queues are served round-robin (``orchestrator/execution/fair_queue.py``). The expected wait follows from the queue
length and the mean service time (Little, "A Proof for the Queuing Formula L = λW", 1961).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from time import perf_counter

from orchestrator.execution.budget import EXPECTED_WAIT, MAX_WAIT
from orchestrator.execution.fair_queue import FairQueue, was_served
from orchestrator.service.errors import Overloaded

_NEWEST_WEIGHT = 0.1
"""Weight of the newest request in the moving average of the service time."""
_MAX_RISE, _MIN_CEILING_S = 10, 0.01
"""A service time counts as at most this many times the average plus these seconds: a request that a stalled machine
delayed does not predict the next ones."""
_REMAINING = 0.5
"""Fraction of the service time that a running request still needs on average when another one arrives (PASTA: Wolff,
"Poisson Arrivals See Time Averages", 1982). Service times are nearly equal."""


_BURST_S = 0.2
"""Seconds after a slot was last free during which requests count as a burst. A burst ends by itself, so its requests
may wait longer. CoDel also tolerates a queue that was short a moment ago (Nichols, Jacobson: "Controlling Queue Delay",
2012)."""


class Admission:
    """Slots for requests. It belongs to one event loop.

    :param max_concurrent: requests that run at the same time.
    :param max_waiting: requests of all tenants that may wait.
    :param clock: seconds from any origin, never going back.
    """

    def __init__(self, max_concurrent: int, max_waiting: int, clock: Callable[[], float] = perf_counter) -> None:
        self.running = 0
        self.interactive_at = -inf
        """When the last request came that is no line of a batch."""
        self._max_concurrent = max_concurrent
        self._max_waiting = max_waiting
        self._clock = clock
        self._queue = FairQueue()
        self._service_time_s = 0.0
        """Moving average."""
        self._free_at = -inf
        """When a slot was last taken without waiting."""

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return len(self._queue)

    @asynccontextmanager
    async def slot(self, tenant: str, timeout_s: float, *, is_batch: bool = False) -> AsyncIterator[None]:
        """Wait for a slot, and release it at the end.

        :param timeout_s: the time limit of the request, the wait included.
        :param is_batch: whether it is a line of a batch, which has no client that waits for it alone.
        :raises Overloaded: if the request would wait too long, or has waited too long.
        """
        if not is_batch:
            self.interactive_at = self._clock()
        start = await self._acquire(tenant, timeout_s)
        try:
            yield
        finally:
            now = self._clock()
            ceiling_s = _MAX_RISE * self._service_time_s + _MIN_CEILING_S
            service_time_s = min(now - start, ceiling_s)
            self._service_time_s += _NEWEST_WEIGHT * (service_time_s - self._service_time_s)
            self._release(now)

    def would_reject(self, tenant: str, timeout_s: float) -> Overloaded | None:
        """The error that :meth:`slot` would raise if it were called now: known before any work starts."""
        if self.running < self._max_concurrent:
            return None
        expected_s = (self._queue.ahead(tenant) + _REMAINING) * self._service_time_s / self._max_concurrent
        is_burst = self._clock() - self._free_at < _BURST_S
        limit_s = timeout_s * (MAX_WAIT if is_burst else EXPECTED_WAIT)
        if self._queue.of(tenant) < self._fair_share(tenant):
            # Less a service time, by which the wait may differ from the expected one.
            limit_s = max(limit_s, timeout_s * MAX_WAIT - self._service_time_s)
        if expected_s > limit_s or self._is_full_for(tenant):
            return self._overloaded(tenant)
        return None

    async def _acquire(self, tenant: str, timeout_s: float) -> float:
        """Wait for a slot. Returns when it was taken: for a request that waited, when the one before it released it.

        In between, the response is written and other requests are read, which also delays those that wait.
        """
        if self.running < self._max_concurrent:
            self.running += 1
            self._free_at = self._clock()
            return self._free_at
        if rejection := self.would_reject(tenant, timeout_s):
            raise rejection
        if self.waiting >= self._max_waiting:
            self._queue.drop_from_longest(Overloaded(over_quota=True))
        waiter = self._queue.add(tenant)
        try:
            async with asyncio.timeout(timeout_s * MAX_WAIT):
                return await waiter
        except BaseException as error:
            if was_served(waiter):
                self._release(self._clock())
            else:
                self._queue.remove(tenant, waiter)
            if isinstance(error, TimeoutError):
                raise self._overloaded(tenant) from None
            raise

    def _release(self, now: float) -> None:
        """Pass the slot to the next tenant's first waiter, if there is one."""
        if not self._queue.serve_next(now):
            self.running -= 1

    def _is_full_for(self, tenant: str) -> bool:
        """Whether the queues are full, and no tenant has more requests waiting than this one would have."""
        return self.waiting >= self._max_waiting and self._queue.longest <= self._queue.of(tenant) + 1

    def _overloaded(self, tenant: str) -> Overloaded:
        return Overloaded(over_quota=self._queue.tenants > 1 and self._queue.of(tenant) > self._fair_share(tenant))

    def _fair_share(self, tenant: str) -> float:
        """How many waiting requests each tenant would have, this one included, if all had the same number."""
        tenants = self._queue.tenants + (self._queue.of(tenant) == 0)
        return self.waiting / tenants
