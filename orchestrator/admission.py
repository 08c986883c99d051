"""Who is worked for now, who waits, and who is told at once that there is too much: what is admitted stays fast.

A request waits in the queue of its tenant, and the queues are served in turn, so that one tenant's flood is that
tenant's alone (fair queueing, dropping from the longest queue: McKenney, "Stochastic Fairness Queueing", 1990). Who
would wait for too long, by how long the last ones took (Little, 1961), is refused at once: it can go elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

_Turn: TypeAlias = "asyncio.Future[None]"

_EXPECTED, _MOST = 0.4, 0.75
"""Of the time that a request has, what it may expect to wait for its turn, and what it waits at most: the rest is for
its work. They are apart, so that few wait in vain."""
_WEIGHT = 0.1
"""Of the newest request in the mean of how long they take."""


class Overloaded(Exception):
    """There is more to do than can be done in time.

    :param theirs: whether the tenant has more waiting than its share, while others wait: it is asked to slow down.
    """

    def __init__(self, theirs: bool) -> None:
        super().__init__(
            "you have more requests waiting than your share"
            if theirs
            else "there is more to do than can be done in time"
        )
        self.theirs = theirs

    def __reduce__(self) -> tuple[type[Overloaded], tuple[bool]]:
        """As it was made: it may come from another task."""
        return type(self), (self.theirs,)


class Admission:
    """Turns to work. One event loop owns it.

    :param at_once: requests worked on at the same time.
    :param waiting: requests that may wait, of all tenants together.
    :param clock: seconds, from anywhere, never going back.
    """

    def __init__(self, at_once: int, waiting: int, clock: Callable[[], float] = perf_counter) -> None:
        self.working = 0
        self.waiting = 0
        self._at_once = at_once
        self._most = waiting
        self._clock = clock
        self._queues: OrderedDict[str, deque[_Turn]] = OrderedDict()
        """Of tenants that wait; the first is served next."""
        self._took_s = 0.0
        """How long a request is worked on, in the mean."""

    async def run(self, tenant: str, seconds: float, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What ``work`` returns, once it is its turn.

        :param seconds: that the request has, waiting included.
        :raises Overloaded: if it would wait for too long, or has.
        """
        await self._enter(tenant, seconds)
        began = self._clock()
        try:
            return await work()
        finally:
            self._took_s += _WEIGHT * (self._clock() - began - self._took_s)
            self._leave()

    def refusal(self, tenant: str, seconds: float) -> Overloaded | None:
        """What :meth:`run` would raise if it were asked now: known before anything is begun."""
        if self.working < self._at_once:
            return None
        expected_s = (self._ahead(tenant) + 1) * self._took_s / self._at_once
        if expected_s > seconds * _EXPECTED or self._full_for(tenant):
            return self._overloaded(tenant)
        return None

    async def _enter(self, tenant: str, seconds: float) -> None:
        if self.working < self._at_once:
            self.working += 1
            return
        if refusal := self.refusal(tenant, seconds):
            raise refusal
        if self.waiting >= self._most:
            self._drop_longest()
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(seconds * _MOST):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()  # it came, and nobody is left to take it
            else:
                self._forget(tenant, turn)
            if isinstance(error, TimeoutError):
                raise self._overloaded(tenant) from None
            raise

    def _leave(self) -> None:
        while self._queues:
            tenant, queue = next(iter(self._queues.items()))
            turn = queue.popleft()
            self.waiting -= 1
            if queue:
                self._queues.move_to_end(tenant)
            else:
                del self._queues[tenant]
            if not turn.done():
                turn.set_result(None)  # the place is handed on
                return
        self.working -= 1

    def _ahead(self, tenant: str) -> int:
        """How many are served before the next of this tenant, as the tenants take turns."""
        own = len(self._queues.get(tenant, ()))
        return sum(min(len(queue), own + 1) for queue in self._queues.values())

    def _full_for(self, tenant: str) -> bool:
        """Whether there is no place, and nobody who has more than this tenant would have with it."""
        own = len(self._queues.get(tenant, ()))
        return self.waiting >= self._most and max(map(len, self._queues.values()), default=0) <= own + 1

    def _drop_longest(self) -> None:
        """Refuse the last of whoever has most waiting."""
        longest = max(self._queues, key=lambda tenant: len(self._queues[tenant]))
        dropped = self._queues[longest][-1]
        self._forget(longest, dropped)
        if not dropped.done():
            dropped.set_exception(Overloaded(theirs=True))

    def _forget(self, tenant: str, turn: _Turn) -> None:
        queue = self._queues.get(tenant)
        if queue and turn in queue:
            queue.remove(turn)
            self.waiting -= 1
            if not queue:
                del self._queues[tenant]

    def _overloaded(self, tenant: str) -> Overloaded:
        own, others = len(self._queues.get(tenant, ())), len(self._queues) > 1
        return Overloaded(theirs=others and own > self.waiting / len(self._queues))
