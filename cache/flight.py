"""One loader for a key at a time, however many wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Flights(Generic[T]):
    """What is being loaded, by key. One event loop owns it. ``joined`` counts who found a flight already under way."""

    def __init__(self) -> None:
        self.joined = 0
        self._flights: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    async def load(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What ``load`` returns, called once for all who ask while it runs.

        Who gives up leaves the others theirs; when the last has given up, the load is cancelled. What it raises is
        raised to each of them, once: the next who asks begins anew.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._begin(key, load)
        else:
            self.joined += 1
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.alone:
                self._forget(key, flight)  # first: who asks from now on must not join what is being cancelled
                flight.task.cancel()

    def begin(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Load for nobody in particular, unless somebody is at it."""
        if key not in self._flights:
            self._begin(key, load).alone = True

    def _begin(self, key: Hashable, load: Callable[[], Coroutine[Any, Any, T]]) -> _Flight[T]:
        flight = self._flights[key] = _Flight(asyncio.ensure_future(load()))
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        return flight

    def _forget(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if flight.task.done() and not flight.task.cancelled() and (error := flight.task.exception()) and flight.alone:
            _log.warning("what is kept could not be made anew: %s", str(error) or type(error).__name__)


class _Flight(Generic[T]):
    def __init__(self, task: asyncio.Future[T]) -> None:
        self.task = task
        self.waiting = 0
        self.alone = False
        """Nobody waits for it, and it goes on all the same."""
