"""Invalidation counters in a Redis that all processes share: by name, a number that grows with every write.

A cached response is stored under the counter values that it was computed with, so after a write it is no longer found.
The process that increments a counter uses the new value immediately. Other processes receive a message, and also read
all counters every ``poll_s`` seconds in case a message was lost: a process serves outdated responses for at most
``poll_s`` plus one deadline. While Redis is unavailable each process continues with the values that it knows;
increments that could not be sent are sent when Redis is available again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from time import monotonic

from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from cache.redis import GuardedRedis, RedisFailed

_log = logging.getLogger(__name__)

_FLUSH_RETRY_S = 0.05
_MIN_WAIT_S = 0.01
_MESSAGE = re.compile(rb"([!-~]{1,200}) (\d{1,17})")
"""A name and its value. Other messages on the channel come from other programs and are ignored."""

_COUNT = re.compile(rb"\d{1,17}")

# The new value is the time of Redis in microseconds, or the old value plus one if that is larger. So a Redis that lost
# its data continues above the values that processes remember.
_INCREMENT = """
local time = redis.call('TIME')
local old = tonumber(redis.call('GET', KEYS[1]) or '0')
local new = math.max(tonumber(time[1]) * 1000000 + tonumber(time[2]), old + 1)
local text = string.format('%.0f', new)
redis.call('SET', KEYS[1], text)
redis.call('PUBLISH', KEYS[2], ARGV[1] .. ' ' .. text)
return text
"""


class RedisInvalidationCounters:
    """The counters under ``prefix``.

    The two Redis connections are closed by the caller.

    :param reads: with a short deadline, because requests wait for reads.
    :param writes: with a longer deadline.
    :param prefix: of the Redis keys, and the name of the channel for messages.
    :param poll_s: seconds between two reads of all known counters.
    """

    def __init__(self, reads: GuardedRedis, writes: GuardedRedis, prefix: str, poll_s: float) -> None:
        self._reads = reads
        self._writes = writes
        self._prefix = prefix
        self._poll_s = poll_s
        self._known: dict[str, int] = {}
        self._unsent: dict[str, int] = {}
        self._poll_at = 0.0

    def known(self, name: str) -> int:
        """The value as far as this process knows; 0 if it has never read one."""
        return self._known.get(name, 0)

    async def ensure_loaded(self, names: Collection[str]) -> bool:
        """Read the counters that are not known yet.

        :returns: whether the values of these names mean the same to other processes: all are known, and none has
            an increment that was not sent yet.
        """
        if any(name in self._unsent for name in names):
            return False
        return all(name in self._known for name in names) or await self._read(names)

    async def increment(self, names: Iterable[str]) -> None:
        """Invalidate everything cached under these names. Never raises: what cannot be sent now is sent later."""
        for name in names:
            self._update(name, self.known(name) + 1)
            self._unsent[name] = self._unsent.get(name, 0) + 1
        await self._send()

    async def flush(self, flush_timeout_s: float = 2.0) -> None:
        """Try for ``flush_timeout_s`` seconds to send what was not sent yet. Call it before the process ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(flush_timeout_s):
                while self._unsent:
                    await self._send()
                    await asyncio.sleep(_FLUSH_RETRY_S if self._unsent else 0)
        if self._unsent:
            _log.warning(
                "invalidation of %d names was not sent to other processes: their cached responses stay outdated until "
                "they expire",
                len(self._unsent),
            )

    async def run(self) -> None:
        """Receive the increments of other processes; runs until it is cancelled."""
        while True:
            try:
                await self._poll()  # before subscribing, which may fail where reading does not
                async with self._writes.client.pubsub() as channel:
                    async with asyncio.timeout(self._writes.deadline_s):
                        await channel.subscribe(self._prefix)
                    await self._listen(channel)
            except (RedisError, OSError, TimeoutError):
                pass  # it is retried
            except Exception:
                # No error may end this task: it would cancel the other tasks of its task group.
                _log.exception("receiving invalidations was interrupted, retrying within %s seconds", self._poll_s)
            await asyncio.sleep(self._until_poll_s())

    async def _poll(self) -> None:
        self._poll_at = monotonic() + self._poll_s  # before any error, so that it is not repeated immediately
        await self._send()
        await self._read(list(self._known))

    def _until_poll_s(self) -> float:
        return max(_MIN_WAIT_S, self._poll_at - monotonic())

    async def _listen(self, channel: PubSub) -> None:
        while True:
            if monotonic() >= self._poll_at:
                await self._poll()
            wait_s = self._until_poll_s()
            async with asyncio.timeout(wait_s + self._writes.deadline_s):  # it may reconnect
                message = await channel.get_message(ignore_subscribe_messages=True, timeout=wait_s)
            if message and (update := _MESSAGE.fullmatch(message["data"])):
                self._update(update[1].decode(), int(update[2]))

    async def _read(self, names: Collection[str]) -> bool:
        if not names:
            return True
        ordered = sorted(names)
        try:
            async with self._reads.call() as client:
                values = await client.mget([self._key(name) for name in ordered])
                # A counter that does not exist is 0.
                counts = [0 if value is None else _count(value) for value in values] if isinstance(values, list) else []
                for name, count in list(zip(ordered, counts, strict=True)):
                    self._update(name, count)
        except RedisFailed:
            return False
        return True

    async def _send(self) -> None:
        for name, count in sorted(self._unsent.items()):
            try:
                async with self._writes.call() as client:
                    value = await client.eval(_INCREMENT, 2, self._key(name), self._prefix, name)
                    self._update(name, _count(value))
            except RedisFailed:
                return
            if self._unsent.get(name) == count:  # otherwise it was incremented again while this one was sent
                del self._unsent[name]

    def _update(self, name: str, value: int) -> None:
        self._known[name] = max(value, self._known.get(name, 0))

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"


def _count(value: object) -> int:
    """The value of a counter in a response of Redis.

    :raises ValueError: if it is not a counter; then the call counts as failed.
    """
    if not isinstance(value, bytes) or not _COUNT.fullmatch(value):
        raise ValueError("the response is not a counter")
    return int(value)
