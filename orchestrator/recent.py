"""What was looked up a moment ago, for whoever asks in that moment: however many ask, it is looked up once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Generic, TypeVar

from cache import Flights

T = TypeVar("T")


class Recent(Generic[T]):
    """The last value of ``look``, looked up again where it is ``seconds`` old.

    :param clock: seconds, from anywhere, never going back.
    """

    def __init__(
        self, look: Callable[[], Coroutine[Any, Any, T]], seconds: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._look = look
        self._seconds = seconds
        self._clock = clock
        self._flights: Flights[T] = Flights()
        self._kept: tuple[float, T] | None = None

    async def get(self) -> T:
        """The value.

        :raises Exception: what ``look`` raises; that is not kept.
        """
        if self._kept is None or self._clock() - self._kept[0] >= self._seconds:
            self._kept = self._clock(), await self._flights.load("", self._look)
        return self._kept[1]
