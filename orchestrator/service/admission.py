"""Admission control: a concurrency limit, one fair queue per tenant, and immediate rejection of requests that would
wait too long.

The queues are served in turn, so that a burst of one tenant delays that tenant alone (fair queueing with drops from the
longest queue: McKenney, "Stochastic Fairness Queueing", 1990). The expected wait follows from the queue length and the
mean service time (Little, "A Proof for the Queuing Formula L = λW", 1961).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TypeAlias

from orchestrator.planning.budget import EXPECTED_WAIT, MAX_WAIT
from orchestrator.service.errors import Overloaded

_Waiter: TypeAlias = "asyncio.Future[None]"

_NEWEST_WEIGHT = 0.1
"""Weight of the newest request in the moving average of the service time."""


class Admission:
    """Slots for requests. It belongs to one event loop.

    :param max_concurrent: requests that run at the same time.
    :param max_waiting: requests of all tenants that may wait.
    :param clock: seconds from any origin, never going back.
    """

    def __init__(self, max_concurrent: int, max_waiting: int, clock: Callable[[], float] = perf_counter) -> None:
        self.running = 0
        self.waiting = 0
        self._max_concurrent = max_concurrent
        self._max_waiting = max_waiting
        self._clock = clock
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        """Of tenants that wait; the first one is served next."""
        self._service_time_s = 0.0
        """Moving average."""

    @asynccontextmanager
    async def slot(self, tenant: str, timeout_s: float) -> AsyncIterator[None]:
        """Waits for a slot and has it inside.

        :param timeout_s: the time limit of the request, the wait included.
        :raises Overloaded: if the request would wait too long, or has.
        """
        await self._acquire(tenant, timeout_s)
        start = self._clock()
        try:
            yield
        finally:
            self._service_time_s += _NEWEST_WEIGHT * (self._clock() - start - self._service_time_s)
            self._release()

    def would_reject(self, tenant: str, timeout_s: float) -> Overloaded | None:
        """The error that :meth:`slot` would raise if it were called now: known before any work starts."""
        if self.running < self._max_concurrent:
            return None
        expected_s = (self._ahead(tenant) + 1) * self._service_time_s / self._max_concurrent
        if expected_s > timeout_s * EXPECTED_WAIT or self._is_full_for(tenant):
            return self._overloaded(tenant)
        return None

    async def _acquire(self, tenant: str, timeout_s: float) -> None:
        if self.running < self._max_concurrent:
            self.running += 1
            return
        if rejection := self.would_reject(tenant, timeout_s):
            raise rejection
        if self.waiting >= self._max_waiting:
            self._drop_from_longest_queue()
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append(waiter)
        self.waiting += 1
        try:
            async with asyncio.timeout(timeout_s * MAX_WAIT):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release()  # it got a slot at the moment it was cancelled
            else:
                self._remove(tenant, waiter)
            if isinstance(error, TimeoutError):
                raise self._overloaded(tenant) from None
            raise

    def _release(self) -> None:
        """Pass the slot to the next tenant's first waiter, if there is one."""
        while self._queues:
            tenant, queue = next(iter(self._queues.items()))
            waiter = queue.popleft()
            self.waiting -= 1
            if queue:
                self._queues.move_to_end(tenant)
            else:
                del self._queues[tenant]
            if not waiter.done():
                waiter.set_result(None)
                return
        self.running -= 1

    def _ahead(self, tenant: str) -> int:
        """Number of requests that are served before the next one of this tenant."""
        own = len(self._queues.get(tenant, ()))
        return sum(min(len(queue), own + 1) for queue in self._queues.values())

    def _is_full_for(self, tenant: str) -> bool:
        """Whether the queues are full, and no tenant has more requests waiting than this one would have."""
        own = len(self._queues.get(tenant, ()))
        return self.waiting >= self._max_waiting and max(map(len, self._queues.values()), default=0) <= own + 1

    def _drop_from_longest_queue(self) -> None:
        longest = max(self._queues, key=lambda tenant: len(self._queues[tenant]))
        dropped = self._queues[longest][-1]
        self._remove(longest, dropped)
        if not dropped.done():
            dropped.set_exception(Overloaded(over_quota=True))

    def _remove(self, tenant: str, waiter: _Waiter) -> None:
        queue = self._queues.get(tenant)
        if queue and waiter in queue:
            queue.remove(waiter)
            self.waiting -= 1
            if not queue:
                del self._queues[tenant]

    def _overloaded(self, tenant: str) -> Overloaded:
        own, others_wait = len(self._queues.get(tenant, ())), len(self._queues) > 1
        return Overloaded(over_quota=others_wait and own > self.waiting / len(self._queues))
