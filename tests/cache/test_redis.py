"""The second level and the generations, against a real Redis: as it should be, and as it should not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter, time

import pytest
from redis.asyncio import Redis

from cache import Entry
from cache.generations import Generations
from cache.redis import Guarded, RedisLevel, connect
from tests.servers.start import free_port, redis_on

pytestmark = [pytest.mark.anyio, pytest.mark.server]
DEADLINE_S = 0.1


@pytest.fixture
async def client(server_url: Callable[[str], str]) -> AsyncIterator[Redis]:
    made = connect(server_url("redis"), DEADLINE_S)
    yield made
    await made.aclose()


@pytest.fixture
def prefix() -> str:
    return f"test:{uuid.uuid4().hex}:"


def entry(content: bytes = b"an answer", seconds: float = 60.0) -> Entry:
    return Entry(content, float(int(time())), seconds, 30.0)


async def stored(level: RedisLevel, key: bytes, kept: Entry) -> None:
    level.put(key, kept, time())
    await asyncio.gather(*level._writes)


async def test_what_one_stores_another_finds_until_it_expires(client: Redis, prefix: str) -> None:
    here = RedisLevel(Guarded(client, DEADLINE_S), prefix.encode())
    there = RedisLevel(Guarded(client, DEADLINE_S), prefix.encode())
    await stored(here, b"k", kept := entry())
    assert await there.get(b"k", time()) == kept
    assert await there.get(b"other", time()) is None
    assert (there.stats.hits, there.stats.misses, there.stats.errors) == (1, 1, 0)
    assert 80_000 < await client.pttl(prefix.encode() + b"k") <= 90_000
    assert await there.get(b"k", time() + 100) is None


async def test_garbage_under_our_keys_is_a_miss(client: Redis, prefix: str) -> None:
    level = RedisLevel(Guarded(client, DEADLINE_S), prefix.encode())
    await client.set(prefix.encode() + b"k", b"\x01not ours")
    await client.rpush(prefix.encode() + b"list", b"x")  # the answer to a GET is an error then
    assert await level.get(b"k", time()) is None
    assert await level.get(b"list", time()) is None
    assert level.stats.errors == 2
    assert level.state == "closed"


async def test_too_much_is_not_stored(client: Redis, prefix: str) -> None:
    level = RedisLevel(Guarded(client, DEADLINE_S), prefix.encode())
    await stored(level, b"k", entry(b"x" * 2_000_000))
    assert level.stats.skipped == 1
    assert await client.exists(prefix.encode() + b"k") == 0


@pytest.fixture
def own() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Redis of this test alone, to be stopped and ended."""
    with redis_on(free_port()) as running:
        yield running


@pytest.mark.parametrize("url", ["wrong password", "nobody there"])
async def test_a_redis_that_cannot_be_used_is_a_miss_and_is_left_alone(
    own: tuple[str, subprocess.Popen[bytes]], url: str
) -> None:
    address = own[0].replace("redis://", "redis://:wrong@") if url == "wrong password" else "redis://127.0.0.1:1"
    client = connect(address, DEADLINE_S)
    if url == "wrong password":
        admin = connect(own[0], DEADLINE_S)
        await admin.config_set("requirepass", "right")
        await admin.aclose()
    level = RedisLevel(Guarded(client, DEADLINE_S), b"p")
    for _ in range(5):
        assert await level.get(b"k", time()) is None
    assert (level.state, level.stats.errors) == ("open", 5)
    await stored(level, b"k", entry())
    await client.aclose()


async def test_a_redis_that_is_full_is_a_miss(own: tuple[str, subprocess.Popen[bytes]]) -> None:
    client = connect(own[0], DEADLINE_S)
    await client.config_set("maxmemory", "1")
    level = RedisLevel(Guarded(client, DEADLINE_S), b"p")
    await stored(level, b"k", entry())
    assert level.stats.errors == 1
    assert await level.get(b"k", time()) is None
    await client.aclose()


async def test_a_redis_that_stands_still_costs_no_more_than_its_deadline_and_then_nothing(
    own: tuple[str, subprocess.Popen[bytes]],
) -> None:
    client = connect(own[0], DEADLINE_S)
    level = RedisLevel(Guarded(client, DEADLINE_S), b"p")
    await stored(level, b"k", kept := entry())
    os.kill(own[1].pid, signal.SIGSTOP)
    for _ in range(3):
        began = perf_counter()
        assert await level.get(b"k", time()) is None
        assert perf_counter() - began < DEADLINE_S + 0.1
    assert level.state == "open"
    began = perf_counter()
    assert await level.get(b"k", time()) is None
    assert perf_counter() - began < 0.01
    os.kill(own[1].pid, signal.SIGCONT)

    async def is_back() -> bool:
        return await level.get(b"k", time()) == kept

    await until(is_back, 3)
    await client.aclose()


def generations(client: Redis, prefix: str, poll_s: float = 0.1) -> Generations:
    return Generations(Guarded(client, 1.0), Guarded(client, 1.0), prefix, poll_s)


async def test_a_number_grows_with_every_write_and_is_known_at_once(client: Redis, prefix: str) -> None:
    here = generations(client, prefix)
    assert await here.learn(["a", "b"])
    seen = [here.known("a")]
    for _ in range(5):
        await here.bump(["a"])
        seen.append(here.known("a"))
    assert seen == sorted(set(seen))
    assert here.known("b") == 0
    late = generations(client, prefix)
    assert await late.learn(["a"])
    assert late.known("a") == seen[-1]


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float) -> float:
    """How long it took; looks again and again, for a server tells nobody."""
    began = perf_counter()
    async with asyncio.timeout(seconds):
        while True:
            held = condition()
            if await held if isinstance(held, Awaitable) else held:
                return perf_counter() - began
            await asyncio.sleep(0.002)


async def listened(client: Redis, channel: str) -> None:
    """Until somebody listens there."""

    async def listens() -> bool:
        return bool((await client.pubsub_numsub(channel))[0][1])

    await until(listens, 10)


async def test_others_are_told_by_a_message(client: Redis, prefix: str) -> None:
    here, there = generations(client, prefix), generations(client, prefix, poll_s=60.0)
    await there.learn(["a"])
    listening = asyncio.create_task(there.run())
    await listened(client, prefix)
    for _ in range(20):
        await here.bump(["a"])
        assert await until(lambda: there.known("a") == here.known("a"), 5) < 1.0
    await ended(listening)


async def test_a_message_that_is_lost_is_made_up_for_by_looking(client: Redis, prefix: str) -> None:
    here, there = generations(client, prefix), generations(client, prefix)
    await there.learn(["a"])
    await here.bump(["a"])  # before the other listens
    listening = asyncio.create_task(there.run())
    await until(lambda: there.known("a") == here.known("a"), 5)
    # What happens while it does not hear: written past the channel.
    await client.set(f"{prefix}:a", here.known("a") + 5)
    await until(lambda: there.known("a") == here.known("a") + 5, 5)
    await ended(listening)


async def test_what_could_not_be_told_is_told_when_redis_is_back(prefix: str) -> None:
    port = free_port()
    client = connect(f"redis://127.0.0.1:{port}", DEADLINE_S)
    other = connect(f"redis://127.0.0.1:{port}", DEADLINE_S)
    here, there = generations(client, prefix), generations(other, prefix)
    assert not await here.learn(["a"])
    await here.bump(["a"])
    local = here.known("a")
    assert local > 0
    tasks = [asyncio.create_task(each.run()) for each in (here, there)]
    with redis_on(port):
        await until(lambda: there.learn(["a"]), 10)
        await until(lambda: here.known("a") > local and there.known("a") == here.known("a"), 10)
        before = here.known("a")
        await client.flushall()  # it forgets everything; who remembers goes on above
        await here.bump(["a"])
        assert here.known("a") > before
        await until(lambda: there.known("a") == here.known("a"), 10)
    await ended(*tasks)
    await client.aclose()
    await other.aclose()


async def test_what_else_stands_on_the_channel_is_nothing(client: Redis, prefix: str) -> None:
    here, there = generations(client, prefix), generations(client, prefix, poll_s=60.0)
    await there.learn(["a"])
    listening = asyncio.create_task(there.run())
    await listened(client, prefix)
    for message in (b"hello", b"a minus", b"\xff 1", b"a 99999999999999999999999", b""):
        await client.publish(prefix, message)
    await here.bump(["a"])
    await until(lambda: there.known("a") == here.known("a"), 5)
    await ended(listening)


async def test_a_number_that_others_do_not_know_is_shared_with_nobody(prefix: str) -> None:
    client = connect("redis://127.0.0.1:1", DEADLINE_S)
    alone = generations(client, prefix)
    alone._known["a"] = 7
    assert await alone.learn(["a"])
    await alone.bump(["a"])
    assert not await alone.learn(["a"])
    await alone.flush(0.2)
    await client.aclose()


async def test_a_write_while_another_is_being_told_is_told_too(client: Redis, prefix: str) -> None:
    here = generations(client, prefix)
    await asyncio.gather(*(here.bump(["a"]) for _ in range(20)))
    assert here._unsent == {}
    last = here.known("a")
    late = generations(client, prefix)
    assert await late.learn(["a"])
    assert late.known("a") == last


async def test_many_at_once_have_their_turns_and_are_no_fault_of_redis(client: Redis, prefix: str) -> None:
    """A thousand at once are more than there are connections; patient here: the machine may be at something else."""
    level = RedisLevel(Guarded(client, 10.0), prefix.encode())
    await stored(level, b"k", kept := entry())
    assert await asyncio.gather(*(level.get(b"k", time()) for _ in range(1_000))) == [kept] * 1_000
    assert (level.state, level.stats.errors) == ("closed", 0)
