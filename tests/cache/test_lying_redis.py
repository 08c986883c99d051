"""A server that speaks RESP and answers what Redis does not: each lie is a failed call, and nothing else.

The server is a stub: a real Redis cannot be made to lie.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic, time

import pytest

from cache import CacheEntry
from cache.counters import RedisInvalidationCounters
from cache.redis import GuardedRedis, RedisLevel, connect
from tests.servers.stub import Serve, stub

pytestmark = pytest.mark.anyio

DEADLINE_S = 0.3
LIES = {
    "number": b":7\r\n",
    "negative": b":-1\r\n",
    "array": b"*1\r\n$1\r\nx\r\n",
    "nested arrays": b"*1\r\n" * 50 + b":1\r\n",
    "array of one number": b"*1\r\n:7\r\n",
    "array of one text": b"*1\r\n$3\r\nNaN\r\n",
    "array of one float": b"*1\r\n$3\r\n1.5\r\n",
    "array of one negative": b"*1\r\n$2\r\n-1\r\n",
    "array of one huge number": b"*1\r\n$400\r\n" + b"9" * 400 + b"\r\n",
    "longer array": b"*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n",
    "empty array": b"*0\r\n",
    "no array": b"*-1\r\n",
    "status": b"+OK\r\n",
    "error": b"-ERR what only some may read\r\n",
    "text": b"$5\r\nhello\r\n",
    "moved": b"-MOVED 3999 127.0.0.1:1\r\n",
    "truncated": b"$100\r\nabc",
    "another protocol": b"HTTP/1.1 200 OK\r\n\r\n",
    "huge length": b"$999999999999\r\nx",
    "huge array": b"*2000000000\r\n:1\r\n",
    "invalid length": b"$x\r\n",
    "unknown type": b"?1\r\n",
    "set of arrays": b"~1\r\n*0\r\n",
    "map with a map as its key": b"%1\r\n%1\r\n+a\r\n:1\r\n:2\r\n",
    "set of a message": b"~1\r\n>2\r\n+message\r\n:1\r\n",
    "nothing": b"",
}


def lying(answer: bytes, endless: bool = False) -> Serve:
    """Answers the commands with which the client introduces itself, and lies to all others."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while count := await reader.readline():
            words = []
            for _ in range(int(count[1:])):
                length = int((await reader.readline())[1:])
                words.append((await reader.readexactly(length + 2))[:-2])
            if words[0].upper() == b"CLIENT":
                writer.write(b"+OK\r\n")
            else:
                writer.write(answer)
                while endless and not writer.is_closing():
                    writer.write(b":1\r\n" * 1_000)
                    await writer.drain()
            await writer.drain()

    return serve


class Endless:
    """Answers every command, but for those of the introduction, with a reply without end.

    :ivar left: set when the client has closed the connection.
    """

    def __init__(self, begin: bytes) -> None:
        self._lying = lying(begin, endless=True)
        self.sent = 0
        self.left = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        write = writer.write

        def count(content: bytes) -> None:
            self.sent += len(content)
            write(content)

        writer.write = count  # type: ignore[method-assign]
        try:
            await self._lying(reader, writer)
        finally:
            self.left.set()


@asynccontextmanager
async def redis_of(serve: Serve, deadline_s: float = DEADLINE_S) -> AsyncIterator[GuardedRedis]:
    start = monotonic()
    async with stub(serve) as port:
        client = connect(f"redis://127.0.0.1:{port}/0", deadline_s)
        try:
            yield GuardedRedis(client, deadline_s)
        finally:
            await client.aclose()
    assert monotonic() - start < 10 * deadline_s, "an answer stopped the event loop"


async def in_time(call: Awaitable[object]) -> object:
    async with asyncio.timeout(5 * DEADLINE_S):
        return await call


@pytest.mark.parametrize("lie", LIES)
async def test_no_lie_is_an_entry(lie: str) -> None:
    async with redis_of(lying(LIES[lie])) as redis:
        level = RedisLevel(redis, b"prefix:")
        assert await in_time(level.get(b"key", time())) is None


@pytest.mark.parametrize("lie", LIES)
async def test_no_lie_is_a_counter(lie: str) -> None:
    async with redis_of(lying(LIES[lie])) as redis:
        counters = RedisInvalidationCounters(redis, redis, "prefix", poll_s=60)
        assert await in_time(counters.ensure_loaded(["name"])) is False
        assert counters.known("name") == 0
        await in_time(counters.increment(["name"]))
        if lie != "text":  # a script that returns a text has been sent
            assert await counters.ensure_loaded(["name"]) is False
        assert counters.known("name") == 1


@pytest.mark.parametrize("call", ["get", "load", "run"])
@pytest.mark.parametrize(
    "begin",
    [b"$100000000000\r\n", b"*100000000\r\n", b"*2\r\n$-300000000\r\n$302000000\r\n"],
    ids=["text", "array", "negative length"],
)
async def test_a_reply_that_is_too_long_is_left_although_there_is_time(call: str, begin: bytes) -> None:
    served = Endless(begin)
    async with redis_of(served, deadline_s=60.0) as redis:
        counters = RedisInvalidationCounters(redis, redis, "prefix", poll_s=3_600)
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: RedisLevel(redis, b"prefix:").get(b"key", time()),
            "load": lambda: counters.ensure_loaded(["name"]),
            "run": counters.run,
        }
        task = asyncio.create_task(calls[call]())  # type: ignore[arg-type]
        await asyncio.wait_for(served.left.wait(), 30)
        assert served.sent < 20_000_000
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("call", ["get", "load", "put"])
async def test_an_endless_answer_is_left(call: str) -> None:
    async with redis_of(lying(b"*100000000\r\n", endless=True)) as redis:
        level = RedisLevel(redis, b"prefix:")
        counters = RedisInvalidationCounters(redis, redis, "prefix", poll_s=60)
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: level.get(b"key", time()),
            "load": lambda: counters.ensure_loaded(["name"]),
            "put": lambda: level._put(b"key", CacheEntry(b"x", time(), 60, 30), time()),
        }
        assert not await in_time(calls[call]())


async def test_a_stub_that_tells_the_truth_is_believed() -> None:
    """So that the tests above fail for the reason that they name."""
    async with redis_of(lying(b"*1\r\n$2\r\n42\r\n"), deadline_s=10.0) as redis:
        counters = RedisInvalidationCounters(redis, redis, "prefix", poll_s=60)
        assert await counters.ensure_loaded(["name"]) is True
        assert counters.known("name") == 42


@pytest.mark.parametrize(
    "option", ["no_such_option=1", "ssl_cert_reqs=required&other=2", "socket_timeout=1", "protocol=3"]
)
async def test_an_option_of_a_url_that_is_unknown_or_not_allowed_is_an_error_at_once(option: str) -> None:
    scheme = "rediss" if "ssl" in option else "redis"
    with pytest.raises(TypeError):
        connect(f"{scheme}://127.0.0.1:1/0?{option}", DEADLINE_S)
