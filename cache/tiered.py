"""From the nearest level that has it, or from whoever makes it: once, however many ask."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cache.flight import Flights
from cache.memory import Memory
from cache.policy import Entry, jittered
from cache.port import SecondLevel

Level: TypeAlias = Literal["l1", "l2", "stale", "miss"]
Use: TypeAlias = Literal["use", "refresh", "bypass"]


@dataclass(frozen=True, slots=True)
class Made:
    """Bytes that were just made. ``lasting`` says that they are good for their whole time, not for a moment."""

    content: bytes
    lasting: bool


Load: TypeAlias = Callable[[bool], Coroutine[Any, Any, Made]]
"""Makes the bytes; told whether nothing that was kept anywhere may go into them."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that an entry is fresh, that it is used after that while it is made anew, and that what is
    not lasting is kept."""

    fresh_s: float
    stale_s: float
    moment_s: float


class Tiered:
    """Two levels over a loader.

    :param clock: seconds since the epoch.
    :param draw: a random number in [0, 1].
    """

    def __init__(
        self,
        l1: Memory,
        l2: SecondLevel | None,
        times: Times,
        clock: Callable[[], float],
        draw: Callable[[], float],
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.flights: Flights[tuple[bytes, Level]] = Flights()
        self._times = times
        self._clock = clock
        self._draw = draw

    async def get(
        self,
        key: bytes,
        load: Load,
        use: Use = "use",
        flight: bytes = b"",
        shared: bool = True,
        refusal: Callable[[], Exception | None] = lambda: None,
    ) -> tuple[bytes, Level]:
        """The bytes of ``key`` and where they came from.

        ``use`` takes what is there; ``refresh`` makes them anew, and keeps them; ``bypass`` keeps nothing.

        :param shared: whether the key means the same to others, so that the second level may be asked.
        :param flight: what a load hangs on beside the key: who gives the same shares it, and what is made for a moment.
        :param refusal: what is to be raised instead of beginning anything: asked before anybody waits, where the first
            level has nothing fresh and nobody is at it.
        :raises Exception: what ``load`` raises, or ``refusal`` gives.
        """
        if use == "use" and (entry := self._nearest(key, flight, now := self._clock())) is not None:
            if entry.freshness(now) == "fresh":
                return entry.content, "l1"
            if refusal() is None:  # else what is kept is good enough
                self._renew(key, load, shared)
            return entry.content, "stale"
        if (use != "use" or (key, flight) not in self.flights) and (refused := refusal()):
            raise refused
        if use == "bypass":
            return (await load(True)).content, "miss"
        if use == "refresh":
            return await self._make(key, load, flight, shared, anew=True)
        return await self.flights.load((key, flight), lambda: self._fetch(key, load, flight, shared))

    def _nearest(self, key: bytes, flight: bytes, now: float) -> Entry | None:
        """What is kept for all, or for a moment for who asks just like this."""
        return self.l1.get(key, now) or (self.l1.get(key + flight, now) if flight else None)

    async def _fetch(self, key: bytes, load: Load, flight: bytes, shared: bool) -> tuple[bytes, Level]:
        now = self._clock()
        if self.l2 and shared and (entry := await self.l2.get(key, now)) is not None:
            self.l1.put(key, entry)
            if entry.freshness(now) == "fresh":
                return entry.content, "l2"
            self._renew(key, load, shared)
            return entry.content, "stale"
        return await self._make(key, load, flight, shared, anew=False)

    def _renew(self, key: bytes, load: Load, shared: bool) -> None:
        """Make it anew for who asks next, while this one has what there is."""
        self.flights.begin((key, "anew"), lambda: self._make(key, load, b"anew", shared, anew=True))

    async def _make(self, key: bytes, load: Load, flight: bytes, shared: bool, anew: bool) -> tuple[bytes, Level]:
        made = await load(anew)
        now = self._clock()
        times = self._times
        if made.lasting:
            entry = Entry(made.content, now, jittered(times.fresh_s, self._draw()), times.stale_s)
            if self.l2 and shared:
                self.l2.put(key, entry, now)
            self.l1.put(key, entry)
        else:  # beside what is kept for all: it may be better
            self.l1.put(key + flight, Entry(made.content, now, times.moment_s, 0.0))
        return made.content, "miss"
