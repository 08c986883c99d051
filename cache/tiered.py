"""Lookup in L1, then in L2, then computation: one per key, however many callers wait for it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from cache.entry import CacheEntry, jittered
from cache.memory import MemoryLevel
from cache.port import SharedLevel
from cache.single_flight import SingleFlight

Level: TypeAlias = Literal["l1", "l2", "stale", "miss"]
"""Where bytes came from: fresh from a level, stale from either level, or computed."""
CacheMode: TypeAlias = Literal["use", "refresh", "bypass"]


@dataclass(frozen=True, slots=True)
class Computed:
    """Bytes that were just computed. Bytes that are not ``cacheable`` are degraded: they are stored for
    ``degraded_ttl_s`` only, and only in this process."""

    content: bytes
    cacheable: bool


Compute: TypeAlias = Callable[[bool], Coroutine[Any, Any, Computed]]
"""Computes the bytes. Its argument is ``recompute: bool``: if true, results of other caches must not be used."""


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Seconds that an entry is fresh, that it may be returned afterwards while it is recomputed, and that a degraded
    result is stored."""

    ttl_s: float
    stale_while_revalidate_s: float
    degraded_ttl_s: float


class TieredCache:
    """Two cache levels in front of a computation.

    :param clock: seconds since the epoch.
    :param draw: returns a random number in [0, 1], for the jitter of ``ttl_s``.
    """

    def __init__(
        self,
        l1: MemoryLevel,
        l2: SharedLevel | None,
        policy: CachePolicy,
        clock: Callable[[], float],
        draw: Callable[[], float],
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.single_flight: SingleFlight[tuple[bytes, Level]] = SingleFlight()
        self._policy = policy
        self._clock = clock
        self._draw = draw

    async def get_or_compute(
        self,
        key: bytes,
        compute: Compute,
        mode: CacheMode = "use",
        flight_key: bytes = b"",
        shared: bool = True,
        reject: Callable[[], Exception | None] = lambda: None,
    ) -> tuple[bytes, Level]:
        """The bytes of ``key`` and where they came from.

        :param mode: ``use`` returns a cached entry if there is one; ``refresh`` recomputes and stores; ``bypass``
            recomputes and stores nothing.
        :param flight_key: what else a computation depends on, such as its time limit. Only calls with the same ``key``
            and ``flight_key`` wait for the same computation and get the same degraded result.
        :param shared: whether the key has the same meaning in other processes, so that L2 may be used.
        :param reject: returns the error to raise instead of starting a computation, or ``None``. It is called only if
            L1 has no fresh entry and no computation is under way; a stale entry is returned even if it rejects.
        :raises Exception: what ``compute`` raises or ``reject`` returns.
        """
        if mode == "use" and (entry := self._from_l1(key, flight_key, now := self._clock())) is not None:
            if entry.freshness(now) == "fresh":
                return entry.content, "l1"
            if reject() is None:
                self._refresh_in_background(key, compute, shared)
            return entry.content, "stale"
        if (mode != "use" or (key, flight_key) not in self.single_flight) and (rejection := reject()):
            raise rejection
        if mode == "bypass":
            return (await compute(True)).content, "miss"
        if mode == "refresh":
            return await self._compute_and_store(key, compute, flight_key, shared, recompute=True)
        return await self.single_flight.run((key, flight_key), lambda: self._fetch(key, compute, flight_key, shared))

    def _from_l1(self, key: bytes, flight_key: bytes, now: float) -> CacheEntry | None:
        """The entry for all callers; otherwise the degraded result for calls with this ``flight_key``."""
        return self.l1.get(key, now, key + flight_key if flight_key else None)

    async def _fetch(self, key: bytes, compute: Compute, flight_key: bytes, shared: bool) -> tuple[bytes, Level]:
        now = self._clock()
        if self.l2 and shared and (entry := await self.l2.get(key, now)) is not None:
            self.l1.put(key, entry)
            if entry.freshness(now) == "fresh":
                return entry.content, "l2"
            self._refresh_in_background(key, compute, shared)
            return entry.content, "stale"
        return await self._compute_and_store(key, compute, flight_key, shared, recompute=False)

    def _refresh_in_background(self, key: bytes, compute: Compute, shared: bool) -> None:
        """Recompute for later calls, while this call returns the stale entry."""
        self.single_flight.run_detached(
            (key, "background"),
            lambda: self._compute_and_store(key, compute, b"background", shared, recompute=True),
        )

    async def _compute_and_store(
        self, key: bytes, compute: Compute, flight_key: bytes, shared: bool, recompute: bool
    ) -> tuple[bytes, Level]:
        computed = await compute(recompute)
        now = self._clock()
        policy = self._policy
        if computed.cacheable:
            ttl_s = jittered(policy.ttl_s, self._draw())
            entry = CacheEntry(computed.content, now, ttl_s, policy.stale_while_revalidate_s)
            if self.l2 and shared:
                self.l2.put(key, entry, now)
            self.l1.put(key, entry)
        else:  # under another key, because an entry under ``key`` may be better
            self.l1.put(key + flight_key, CacheEntry(computed.content, now, policy.degraded_ttl_s, 0.0))
        return computed.content, "miss"
