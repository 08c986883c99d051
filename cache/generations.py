"""Numbers that grow with every write, by name, in a Redis for all pods: what was cached under another is not asked for.

Who bumps a number knows it at once. The others are told by a message, and look for themselves every ``poll_s`` seconds,
in case a message was lost: that, and one deadline, is how long a pod may go on with what was true before. While
Redis is away each pod goes on with the numbers that it knows, and what could not be bumped is bumped when it is back.
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

from cache.redis import Failed, Guarded

_log = logging.getLogger(__name__)

_AGAIN_S = 0.05
_MESSAGE = re.compile(rb"([!-~]{1,200}) (\d{1,17})")
"""A name and its number; anything else on the channel is somebody else's."""

# Microseconds of Redis' own clock, or one more than there was: so the numbers of a Redis that lost its data go on above
# those that pods remember.
_BUMP = """
local time = redis.call('TIME')
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
local number = math.max(tonumber(time[1]) * 1000000 + tonumber(time[2]), held + 1)
local written = string.format('%.0f', number)
redis.call('SET', KEYS[1], written)
redis.call('PUBLISH', KEYS[2], ARGV[1] .. ' ' .. written)
return written
"""


class Generations:
    """The numbers under ``prefix``.

    :param reads: with a small deadline, for requests wait; ``writes`` with a larger one. Closed by who made them.
    :param prefix: of the keys; also the channel of the messages.
    """

    def __init__(self, reads: Guarded, writes: Guarded, prefix: str, poll_s: float) -> None:
        self._reads = reads
        self._writes = writes
        self._prefix = prefix
        self._poll_s = poll_s
        self._known: dict[str, int] = {}
        self._unsent: dict[str, int] = {}

    def known(self, name: str) -> int:
        """As far as this process knows; 0 if it has never heard of it."""
        return self._known.get(name, 0)

    async def learn(self, names: Collection[str]) -> bool:
        """Ask for what was never heard of; whether others mean the same by the numbers of these names."""
        if any(name in self._unsent for name in names):
            return False
        return all(name in self._known for name in names) or await self._look(names)

    async def bump(self, names: Iterable[str]) -> None:
        """A write was acknowledged under these names. Never fails: what Redis is not told now it is told later."""
        for name in names:
            self._learn(name, self.known(name) + 1)
            self._unsent[name] = self._unsent.get(name, 0) + 1
        await self._send()

    async def flush(self, seconds: float = 2.0) -> None:
        """Before the process ends: what was not told yet is told now, if that is possible at all."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._unsent:
                    await self._send()
                    await asyncio.sleep(_AGAIN_S if self._unsent else 0)
        if self._unsent:
            _log.warning(
                "other processes were not told of %d writes: what they keep is old until it expires", len(self._unsent)
            )

    async def run(self) -> None:
        """Listen and look, for ever."""
        while True:
            try:
                async with self._writes.client.pubsub() as channel:
                    await channel.subscribe(self._prefix)
                    await self._listen(channel)
            except (RedisError, OSError, TimeoutError):
                await asyncio.sleep(self._poll_s)
            except Exception:
                # Whatever it was, it must not take with it what else runs beside this.
                _log.exception("following what others write was interrupted")
                await asyncio.sleep(self._poll_s)

    async def _listen(self, channel: PubSub) -> None:
        due = 0.0
        while True:
            if monotonic() >= due:
                await self._send()
                await self._look(list(self._known))
                due = monotonic() + self._poll_s
            message = await channel.get_message(ignore_subscribe_messages=True, timeout=max(0.01, due - monotonic()))
            if message and (told := _MESSAGE.fullmatch(message["data"])):
                self._learn(told[1].decode(), int(told[2]))

    async def _look(self, names: Collection[str]) -> bool:
        if not names:
            return True
        wanted = sorted(names)
        try:
            async with self._reads.call() as client:
                held = await client.mget([self._key(name) for name in wanted])
                for name, number in zip(wanted, held, strict=True):
                    self._learn(name, int(number or 0))
        except Failed:
            return False
        return True

    async def _send(self) -> None:
        for name, count in sorted(self._unsent.items()):
            try:
                async with self._writes.call() as client:
                    number = await client.eval(_BUMP, 2, self._key(name), self._prefix, name)
                    self._learn(name, int(number))
            except Failed:
                return
            if self._unsent.get(name) == count:  # else it was written to again meanwhile
                del self._unsent[name]

    def _learn(self, name: str, number: int) -> None:
        self._known[name] = max(number, self._known.get(name, 0))

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"
