"""The second cache level (L2): a Redis that all processes share.

No request waits for it longer than a short deadline, and none of its failures is an error of a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import monotonic, perf_counter
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from cache import codec
from cache.bounded_redis import BoundedParser
from cache.circuit_breaker import CircuitBreaker
from cache.entry import CacheEntry
from cache.stats import Stats

_log = logging.getLogger(__name__)

_MAX_FAILURES, _RESET_S = 3, 1.0
_MAX_CONTENT_BYTES = 1_048_576
"""Maximum size of an entry: a larger one costs more to fetch than to compute."""
_MAX_CONCURRENT_CALLS = 16
"""Maximum number of calls at a time: more do not increase the throughput, and each needs a connection."""
_MAX_PENDING_WRITES = 64
"""Maximum number of pending writes; further ones are dropped."""


def connect(url: str, call_timeout_s: float) -> Redis:
    """A client for a URL ``redis://[:password@]host:port/db``; to be called on the event loop that will use it.

    Its commands have no deadline of their own: :meth:`GuardedRedis.call` sets it. The timeout of redis-py is off
    because it uses ``asyncio.wait_for``, which before Python 3.12 loses a cancellation that comes together with the
    result (CPython issue 86296): a call would miss its deadline, and a task that is cancelled once would go on.

    :param call_timeout_s: the deadline of one call. Connecting and closing get ten times that, as a last resort.
    :raises TypeError: if the URL has an unknown option, or one that is chosen here.
    :raises ValueError: if an option has a value that is not allowed.
    """
    chosen: dict[str, Any] = {
        "socket_timeout": None,
        "protocol": 2,
        # Not the parser of hiredis, which redis-py prefers: it allocates as many elements as a reply announces, and
        # 2,000,000,000 elements block the event loop for seconds.
        "parser_class": BoundedParser,
    }
    client: Redis = Redis.from_url(
        url, socket_connect_timeout=10 * call_timeout_s, max_connections=4 * _MAX_CONCURRENT_CALLS, **chosen
    )
    # An option of the URL has precedence over an argument.
    if others := [name for name, value in chosen.items() if client.connection_pool.connection_kwargs[name] != value]:
        raise TypeError(f"the options {', '.join(others)} are set by Trivium and must not be in the URL")
    # A wrong option of the URL raises only when a connection is made.
    try:
        client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except RedisError as error:
        raise ValueError(str(error)) from error
    return client


class RedisFailed(Exception):
    """A call to Redis failed, or was not made because the circuit is open. It never leaves this package."""


class GuardedRedis:
    """A Redis client behind a deadline, a limit of concurrent calls and a circuit breaker.

    :param deadline_s: time limit of every call, including the wait for a slot and for a connection.
    """

    def __init__(self, client: Redis, deadline_s: float, clock: Callable[[], float] = monotonic) -> None:
        self.client = client
        self.breaker = CircuitBreaker(_MAX_FAILURES, _RESET_S, clock)
        self.deadline_s = deadline_s
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT_CALLS)

    @asynccontextmanager
    async def call(self) -> AsyncIterator[Redis]:
        """The client, for the commands of one call.

        :raises RedisFailed: for every failure of Redis; immediately if the circuit is open.
        """
        if not self.breaker.allows():
            raise RedisFailed("circuit open")
        slot_acquired_at: float | None = None
        try:
            async with asyncio.timeout(self.deadline_s), self._slots:
                slot_acquired_at = perf_counter()
                yield self.client
        except Exception as error:
            # Not only errors of the client: its parser raises a TypeError or an IndexError for a corrupted reply.
            call_s = perf_counter() - slot_acquired_at if slot_acquired_at else 0.0
            if isinstance(error, TimeoutError) and call_s < self.deadline_s / 2:
                self.breaker.abandoned()  # most of the time passed in our own queue, not in Redis
            else:
                self._record_failure(error)
            raise RedisFailed(str(error) or "timed out") from error
        except BaseException:  # cancelled
            self.breaker.abandoned()
            raise
        self.breaker.succeeded()

    def _record_failure(self, error: Exception) -> None:
        before = self.breaker.state
        self.breaker.failed()
        if before == "closed" and self.breaker.state == "open":
            _log.warning("redis failed %d times in a row, circuit open: %s", _MAX_FAILURES, _describe(error))


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class RedisLevel:
    """Cache entries in Redis, each under ``prefix`` and its key, until it expires.

    :param redis: closed by the caller.
    """

    def __init__(self, redis: GuardedRedis, prefix: bytes) -> None:
        self.stats = Stats()
        self.redis = redis
        self._prefix = prefix
        self._writes: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> str:
        """The state of the circuit breaker: ``closed``, ``open`` or ``half-open``."""
        return self.redis.breaker.state

    async def get(self, key: bytes, now: float) -> CacheEntry | None:
        """The entry; ``None`` if Redis has none, fails or is too slow, or if the bytes are not an entry of this key."""
        redis_key = self._prefix + key
        try:
            async with self.redis.call() as client:
                encoded = await client.get(redis_key)
        except RedisFailed:
            self.stats.errors += 1
            return None
        entry = codec.decode(redis_key, encoded) if isinstance(encoded, bytes) else None
        if entry is None or entry.freshness(now) == "expired":
            self.stats.errors += encoded is not None and entry is None  # not written by this program
            self.stats.misses += 1
            return None
        self.stats.record_found(entry, now)
        return entry

    def put(self, key: bytes, entry: CacheEntry, now: float) -> None:
        """Store the entry in the background; the request does not wait for it."""
        if len(entry.content) > _MAX_CONTENT_BYTES or len(self._writes) >= _MAX_PENDING_WRITES:
            self.stats.skipped += 1
            return
        self._in_background(self._put(key, entry, now))

    async def _put(self, key: bytes, entry: CacheEntry, now: float) -> None:
        redis_key = self._prefix + key
        expires_in_ms = max(1, int(entry.remaining_s(now) * 1_000))
        try:
            async with self.redis.call() as client:
                await client.set(redis_key, codec.encode(redis_key, entry), px=expires_in_ms)
            self.stats.stored += 1
        except RedisFailed:
            self.stats.errors += 1

    def _in_background(self, write: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(write)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
