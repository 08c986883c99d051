"""The second level: a Redis that all pods share. It is never waited for beyond a small deadline, and never an error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import monotonic, perf_counter
from typing import Any, TypeGuard

from redis.asyncio import Redis
from redis.exceptions import RedisError

from cache import codec
from cache.breaker import Breaker
from cache.policy import Entry
from cache.stats import Stats

_log = logging.getLogger(__name__)

_FAILURES, _PAUSE_S = 3, 1.0
_MAX_BYTES = 1_048_576
"""A larger entry costs more to fetch than to make."""
_AT_ONCE = 16
"""Calls under way: one event loop gets no more done with more of them, and each has a connection."""
_MAX_WRITES = 64
"""Under way at once; more are dropped."""


def connect(url: str, timeout_s: float) -> Redis:
    """A client for a URL ``redis://[:password@]host:port/db``; call it on the event loop that will use it."""
    client: Redis = Redis.from_url(
        url, socket_timeout=10 * timeout_s, socket_connect_timeout=10 * timeout_s, max_connections=4 * _AT_ONCE
    )
    return client


class Failed(Exception):
    """Redis did not do what it was asked, or was not asked. It goes no further than this package."""


class Guarded:
    """A Redis behind a deadline and a breaker.

    :param deadline_s: for every call, the wait for its turn and the connecting included.
    """

    def __init__(self, client: Redis, deadline_s: float, clock: Callable[[], float] = monotonic) -> None:
        self.client = client
        self.breaker = Breaker(_FAILURES, _PAUSE_S, clock)
        self._deadline_s = deadline_s
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def call(self) -> AsyncIterator[Redis]:
        """Around what is asked of it.

        :raises Failed: for everything that goes wrong, and at once where it went wrong before.
        """
        if not self.breaker.allows():
            raise Failed("left alone for a moment")
        turn_came: float | None = None
        try:
            async with asyncio.timeout(self._deadline_s), self._turns:
                turn_came = perf_counter()
                yield self.client
        except BaseException as error:
            if not _of_redis(error):
                self.breaker.abandoned()
                raise
            own_s = perf_counter() - turn_came if turn_came else 0.0
            if isinstance(error, TimeoutError) and own_s < self._deadline_s / 2:
                self.breaker.abandoned()  # it waited for its turn most of the time: that is our own doing
            else:
                self._failed(error)
            raise Failed(str(error) or "timed out") from error
        self.breaker.succeeded()

    def _failed(self, error: Exception) -> None:
        was = self.breaker.state
        self.breaker.failed()
        if was == "closed" and self.breaker.state == "open":
            _log.warning("redis is left alone until it answers again: %s", str(error) or type(error).__name__)


def _of_redis(error: BaseException) -> TypeGuard[Exception]:
    """Whether it tells of Redis or the way to it; anything else is a defect, or a cancellation."""
    if type(error) is RuntimeError:  # uvloop's word for a connection that was lost just before it was written to
        return str(error).endswith("the handler is closed")
    return isinstance(error, (RedisError, OSError, TimeoutError, ValueError))


class RedisLevel:
    """Entries in Redis, each under ``prefix`` and its key, until it expires.

    :param redis: closed by who made it.
    """

    def __init__(self, redis: Guarded, prefix: bytes) -> None:
        self.stats = Stats()
        self.redis = redis
        self._prefix = prefix
        self._writes: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> str:
        """Of the breaker."""
        return self.redis.breaker.state

    async def get(self, key: bytes, now: float) -> Entry | None:
        """The entry, if Redis has it, says so in time, and it is one of ours."""
        try:
            async with self.redis.call() as client:
                written = await client.get(self._prefix + key)
        except Failed:
            self.stats.errors += 1
            return None
        entry = codec.decode(written) if isinstance(written, bytes) else None
        if entry is None or entry.freshness(now) == "expired":
            self.stats.errors += written is not None and entry is None  # garbage under our key
            self.stats.misses += 1
            return None
        self.stats.found(entry, now)
        return entry

    def put(self, key: bytes, entry: Entry, now: float) -> None:
        """Store it soon; who asked does not wait for it."""
        if len(entry.content) > _MAX_BYTES or len(self._writes) >= _MAX_WRITES:
            self.stats.skipped += 1
            return
        self._soon(self._put(key, entry, now))

    async def _put(self, key: bytes, entry: Entry, now: float) -> None:
        try:
            async with self.redis.call() as client:
                await client.set(self._prefix + key, codec.encode(entry), px=max(1, int(entry.left_s(now) * 1_000)))
            self.stats.stored += 1
        except Failed:
            self.stats.errors += 1

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
