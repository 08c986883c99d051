"""A value with a time to live that is loaded once for all concurrent callers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Generic, TypeVar

from cache import SingleFlight

T = TypeVar("T")


class CoalescedTtlValue(Generic[T]):
    """The last value of ``load``, loaded again when it is ``ttl_s`` seconds old.

    :param clock: seconds from any origin, never going back.
    """

    def __init__(
        self, load: Callable[[], Coroutine[Any, Any, T]], ttl_s: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._load = load
        self._ttl_s = ttl_s
        self._clock = clock
        self._loading: SingleFlight[T] = SingleFlight()
        self._loaded: tuple[float, T] | None = None

    async def get(self) -> T:
        """The value.

        :raises Exception: what ``load`` raises; an error is not stored.
        """
        if self._loaded is None or self._clock() - self._loaded[0] >= self._ttl_s:
            self._loaded = self._clock(), await self._loading.run("", self._load)
        return self._loaded[1]
