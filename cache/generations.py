"""Numbers that grow with every write, by name, in a Redis for all pods: what was cached under another is not asked for.

Who bumps a number knows it at once. The others are told by a message, and look for themselves every ``poll_s`` seconds,
in case a message was lost: that, and one deadline, is how long a pod may go on with what was true before. While
Redis is away each pod goes on with the numbers that it knows, and what could not be bumped is bumped when it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from time import monotonic

from redis.exceptions import RedisError

from cache.redis import Failed, Guarded

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

    :param redis: closed by who made it.
    :param prefix: of the keys; also the channel of the messages.
    """

    def __init__(self, redis: Guarded, prefix: str, poll_s: float) -> None:
        self._redis = redis
        self._prefix = prefix
        self._poll_s = poll_s
        self._known: dict[str, int] = {}
        self._unsent: set[str] = set()

    def known(self, name: str) -> int:
        """As far as this process knows; 0 if it has never heard of it."""
        return self._known.get(name, 0)

    async def learn(self, names: Collection[str]) -> bool:
        """Ask for what was never heard of; whether all are known now."""
        return all(name in self._known for name in names) or await self._look(names)

    async def bump(self, names: Iterable[str]) -> None:
        """A write was acknowledged under these names. Never fails: what Redis is not told now it is told later."""
        for name in names:
            self._learn(name, self.known(name) + 1)
            self._unsent.add(name)
        await self._send()

    async def run(self) -> None:
        """Listen and look, for ever."""
        while True:
            try:
                async with self._redis.client.pubsub() as channel:
                    await channel.subscribe(self._prefix)
                    await self._listen(channel)
            except (RedisError, OSError, TimeoutError):
                await asyncio.sleep(self._poll_s)

    async def _listen(self, channel: object) -> None:
        due = 0.0
        while True:
            if monotonic() >= due:
                await self._send()
                await self._look(list(self._known))
                due = monotonic() + self._poll_s
            message = await channel.get_message(  # type: ignore[attr-defined]
                ignore_subscribe_messages=True, timeout=max(0.01, due - monotonic())
            )
            if message:
                name, _, number = message["data"].decode().rpartition(" ")
                self._learn(name, int(number))

    async def _look(self, names: Collection[str]) -> bool:
        if not names:
            return True
        wanted = sorted(names)
        try:
            async with self._redis.call() as client:
                held = await client.mget([self._key(name) for name in wanted])
                for name, number in zip(wanted, held, strict=True):
                    self._learn(name, int(number or 0))
        except Failed:
            return False
        return True

    async def _send(self) -> None:
        for name in sorted(self._unsent):
            try:
                async with self._redis.call() as client:
                    number = await client.eval(_BUMP, 2, self._key(name), self._prefix, name)
                    self._learn(name, int(number))
            except Failed:
                return
            self._unsent.discard(name)

    def _learn(self, name: str, number: int) -> None:
        self._known[name] = max(number, self._known.get(name, 0))

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"
