"""One queue per tenant. The queues are served round-robin, so that a burst of one tenant delays only that tenant.

Fair queueing with drops from the longest queue: McKenney, "Stochastic Fairness Queueing", 1990.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

Waiter: TypeAlias = "asyncio.Future[float]"
"""A future that is done when the waiter is served; its result is the time of that."""


class FairQueue:
    """The waiters by tenant. The queue belongs to one event loop."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Waiter]] = OrderedDict()
        """The tenants with waiters; the first one is served next."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def tenants(self) -> int:
        """Number of tenants with waiters."""
        return len(self._queues)

    @property
    def longest(self) -> int:
        """The largest number of waiters of a tenant."""
        return max(map(len, self._queues.values()), default=0)

    def of(self, tenant: str) -> int:
        """Number of waiters of a tenant."""
        return len(self._queues.get(tenant, ()))

    def ahead(self, tenant: str) -> int:
        """Number of waiters that are served before the next one of this tenant."""
        own = self.of(tenant)
        return sum(min(len(queue), own + 1) for queue in self._queues.values())

    def add(self, tenant: str) -> Waiter:
        """Add a waiter at the end of a tenant's queue."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append(waiter)
        self._length += 1
        return waiter

    async def wait(self, tenant: str, release: Callable[[], None]) -> None:
        """Wait until a waiter of the tenant is served. If it is cancelled, it leaves the queue.

        :param release: called if it was served at the moment when it was cancelled.
        """
        waiter = self.add(tenant)
        try:
            await waiter
        except BaseException:
            if was_served(waiter):
                release()
            else:
                self.remove(tenant, waiter)
            raise

    def serve_next(self, now: float) -> bool:
        """Serve the first waiter of the next tenant. Returns whether there was one.

        :param now: the time, which is the result of the waiter.
        """
        while self._queues:
            tenant, queue = next(iter(self._queues.items()))
            waiter = queue.popleft()
            self._length -= 1
            waits = not waiter.done()
            if not queue:
                del self._queues[tenant]
            elif waits:
                self._queues.move_to_end(tenant)
            if waits:
                waiter.set_result(now)
                return True
        return False

    def remove(self, tenant: str, waiter: Waiter) -> None:
        """Remove a waiter, if it waits."""
        queue = self._queues.get(tenant)
        if queue and waiter in queue:
            queue.remove(waiter)
            self._length -= 1
            if not queue:
                del self._queues[tenant]

    def drop_from_longest(self, error: Exception) -> None:
        """Raise an error in the last waiter of the tenant with the most waiters."""
        longest = max(self._queues, key=self.of)
        dropped = self._queues[longest][-1]
        self.remove(longest, dropped)
        if not dropped.done():
            dropped.set_exception(error)


def was_served(waiter: Waiter) -> bool:
    """Whether a waiter was served, perhaps at the moment it was cancelled."""
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None


class FairSlots:
    """Slots that waiting tenants get round-robin, and whose number may change.

    :param limit: how many there are now.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._taken = 0
        self._queue = FairQueue()

    @asynccontextmanager
    async def slot(self, tenant: str, timeout_s: float) -> AsyncIterator[None]:
        """Wait for a slot, and release it at the end. A cancelled waiter leaves the queue.

        :raises TimeoutError: if there was none within this time.
        """
        if self._queue or self._taken >= self._limit():
            async with asyncio.timeout(timeout_s):
                await self._queue.wait(tenant, self._release)
        else:
            self._taken += 1
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        self._taken -= 1
        now = asyncio.get_running_loop().time()
        while self._taken < self._limit() and self._queue.serve_next(now):
            self._taken += 1


class FairLock:
    """A lock that serves waiting tenants round-robin, and at most one task in each event loop iteration."""

    def __init__(self) -> None:
        self._locked = False
        self._queue = FairQueue()

    @asynccontextmanager
    async def turn_of(self, tenant: str) -> AsyncIterator[None]:
        """Wait for the lock, and release it at the end. A cancelled waiter leaves the queue."""
        if self._locked:
            await self._queue.wait(tenant, self._release)
        self._locked = True
        try:
            yield
        finally:
            # Not in this event loop iteration: a later task of it would get the lock before those that wait.
            asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        self._locked = self._queue.serve_next(asyncio.get_running_loop().time())
