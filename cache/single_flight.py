"""One computation per key at a time, however many callers wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The computations under way, by key. It belongs to one event loop.

    ``coalesced`` counts the calls that waited for a computation that another call had started.
    """

    def __init__(self) -> None:
        self.coalesced = 0
        self._computations: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._computations)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._computations

    async def run(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of ``load``, which is called once for all callers that wait at the same time.

        Cancelling one waiter does not affect the others; when the last waiter is cancelled, the computation is
        cancelled too. An error is raised to every waiter and not cached: the next call starts a new computation.
        """
        return await self.attach(key, load)

    def attach(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """:meth:`run` that starts, or joins, the computation when it is called, and not when the result is awaited."""
        flight = self._computations.get(key)
        if flight is None:
            flight = self._start(key, load)
        else:
            self.coalesced += 1
        return self._wait(key, flight)

    async def _wait(self, key: Hashable, flight: _Flight[T]) -> T:
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.detached:
                self._remove(key, flight)  # before cancelling: no later call may wait for a cancelled computation
                flight.task.cancel()

    def run_detached(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Start a computation without a waiter, unless one for this key is under way. An error is logged."""
        if key not in self._computations:
            self._start(key, load).detached = True

    def _start(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> _Flight[T]:
        flight = self._computations[key] = _Flight(asyncio.ensure_future(load()))
        flight.task.add_done_callback(lambda _: self._remove(key, flight))
        return flight

    def _remove(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._computations.get(key) is flight:
            del self._computations[key]
        if (
            flight.task.done()
            and not flight.task.cancelled()
            and (error := flight.task.exception())
            and flight.detached
        ):
            _log.warning("background refresh failed: %s", str(error) or type(error).__name__)


class _Flight(Generic[T]):
    """One computation under way. If it is ``detached``, it continues without waiters."""

    def __init__(self, task: asyncio.Future[T]) -> None:
        self.task = task
        self.waiters = 0
        self.detached = False
