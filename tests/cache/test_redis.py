"""The second level and the invalidation counters against a real Redis, working and failing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter, time

import pytest
from redis.asyncio import Redis

from cache import CacheEntry
from cache.counters import RedisInvalidationCounters
from cache.redis import GuardedRedis, RedisLevel, connect
from tests.servers.start import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.server]
DEADLINE_S = 0.1


@pytest.fixture
async def client(server_url: Callable[[str], str]) -> AsyncIterator[Redis]:
    connected = connect(server_url("redis"), DEADLINE_S)
    yield connected
    await connected.aclose()


@pytest.fixture
def redis_server(
    redis_on: Callable[[int], tuple[str, subprocess.Popen[bytes]]],
) -> tuple[str, subprocess.Popen[bytes]]:
    """A server of the test's own."""
    return redis_on(free_port())


@pytest.fixture
def prefix() -> str:
    return f"test:{uuid.uuid4().hex}:"


def entry(content: bytes = b"a response", ttl_s: float = 60.0) -> CacheEntry:
    return CacheEntry(content, float(int(time())), ttl_s, 30.0)


async def put(level: RedisLevel, key: bytes, stored: CacheEntry) -> None:
    """Put, and wait until the write has ended, one way or another."""

    def ended() -> int:
        return level.stats.stored + level.stats.errors + level.stats.skipped

    before = ended()
    level.put(key, stored, time())
    await until(lambda: ended() == before + 1, 20)


async def test_an_entry_of_one_process_is_found_by_another_until_it_expires(client: Redis, prefix: str) -> None:
    here = RedisLevel(GuardedRedis(client, DEADLINE_S), prefix.encode())
    there = RedisLevel(GuardedRedis(client, DEADLINE_S), prefix.encode())
    await put(here, b"k", stored := entry())
    assert await there.get(b"k", time()) == stored
    assert await there.get(b"other", time()) is None
    assert (there.stats.hits, there.stats.misses, there.stats.errors) == (1, 1, 0)
    assert 80_000 < await client.pttl(prefix.encode() + b"k") <= 90_000
    assert await there.get(b"k", time() + 100) is None


async def test_garbage_under_a_key_is_a_miss(client: Redis, prefix: str) -> None:
    level = RedisLevel(GuardedRedis(client, DEADLINE_S), prefix.encode())
    await client.set(prefix.encode() + b"k", b"\x01garbage")
    await client.rpush(prefix.encode() + b"list", b"x")  # a GET of a list is an error
    assert await level.get(b"k", time()) is None
    assert await level.get(b"list", time()) is None
    assert level.stats.errors == 2
    assert level.state == "closed"


async def test_the_entry_of_another_key_is_a_miss(client: Redis, prefix: str) -> None:
    """A Redis that answers with it is lying, or was restored from two others."""
    level = RedisLevel(GuardedRedis(client, DEADLINE_S), prefix.encode())
    await put(level, b"restricted", entry())
    await client.copy(prefix.encode() + b"restricted", prefix.encode() + b"public")
    assert await level.get(b"public", time()) is None
    assert (level.stats.errors, level.stats.misses) == (1, 1)
    assert await level.get(b"restricted", time()) is not None


async def test_an_entry_that_is_too_large_is_not_stored(client: Redis, prefix: str) -> None:
    level = RedisLevel(GuardedRedis(client, DEADLINE_S), prefix.encode())
    await put(level, b"k", entry(b"x" * 2_000_000))
    assert level.stats.skipped == 1
    assert await client.exists(prefix.encode() + b"k") == 0


@pytest.mark.parametrize("url", ["wrong password", "no server"])
async def test_a_redis_that_cannot_be_used_is_a_miss_and_opens_the_circuit(
    redis_server: tuple[str, subprocess.Popen[bytes]], url: str
) -> None:
    address = (
        redis_server[0].replace("redis://", "redis://:wrong@") if url == "wrong password" else "redis://127.0.0.1:1"
    )
    client = connect(address, DEADLINE_S)
    if url == "wrong password":
        admin = connect(redis_server[0], DEADLINE_S)
        await admin.config_set("requirepass", "right")
        await admin.aclose()
    level = RedisLevel(GuardedRedis(client, DEADLINE_S), b"p")
    for _ in range(5):
        assert await level.get(b"k", time()) is None
    assert (level.state, level.stats.errors) == ("open", 5)
    await put(level, b"k", entry())
    await client.aclose()


async def test_a_redis_that_is_full_is_a_miss(redis_server: tuple[str, subprocess.Popen[bytes]]) -> None:
    client = connect(redis_server[0], DEADLINE_S)
    await client.config_set("maxmemory", "1")
    level = RedisLevel(GuardedRedis(client, DEADLINE_S), b"p")
    await put(level, b"k", entry())
    assert level.stats.errors == 1
    assert await level.get(b"k", time()) is None
    await client.aclose()


async def test_a_suspended_redis_costs_at_most_its_deadline_and_nothing_once_the_circuit_is_open(
    redis_server: tuple[str, subprocess.Popen[bytes]],
) -> None:
    client = connect(redis_server[0], DEADLINE_S)
    level = RedisLevel(GuardedRedis(client, DEADLINE_S), b"p")
    await put(level, b"k", stored := entry())
    os.kill(redis_server[1].pid, signal.SIGSTOP)
    for _ in range(3):
        started_at = perf_counter()
        assert await level.get(b"k", time()) is None
        assert perf_counter() - started_at < DEADLINE_S + 5  # forever without the deadline
    assert level.state == "open"
    with pytest.raises(StopIteration) as at_once:  # it waits for nothing
        level.get(b"k", time()).send(None)
    assert at_once.value.value is None
    os.kill(redis_server[1].pid, signal.SIGCONT)

    async def is_back() -> bool:
        return await level.get(b"k", time()) == stored

    await until(is_back, 3)
    await client.aclose()


def counters(client: Redis, prefix: str, poll_s: float = 0.1) -> RedisInvalidationCounters:
    return RedisInvalidationCounters(GuardedRedis(client, 1.0), GuardedRedis(client, 1.0), prefix, poll_s)


async def test_a_counter_grows_with_every_write_and_its_value_is_known_immediately(client: Redis, prefix: str) -> None:
    here = counters(client, prefix)
    assert await here.ensure_loaded(["a", "b"])
    seen = [here.known("a")]
    for _ in range(5):
        await here.increment(["a"])
        seen.append(here.known("a"))
    assert seen == sorted(set(seen))
    assert here.known("b") == 0
    late = counters(client, prefix)
    assert await late.ensure_loaded(["a"])
    assert late.known("a") == seen[-1]


async def cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float) -> float:
    """Seconds until ``condition`` is true. By polling, because a server reports nothing by itself."""
    started_at = perf_counter()
    async with asyncio.timeout(seconds):
        while True:
            outcome = condition()
            if await outcome if isinstance(outcome, Awaitable) else outcome:
                return perf_counter() - started_at
            await asyncio.sleep(0.002)


async def wait_for_subscriber(client: Redis, channel: str) -> None:
    async def has_subscriber() -> bool:
        return bool((await client.pubsub_numsub(channel))[0][1])

    await until(has_subscriber, 10)


async def test_other_processes_receive_an_increment_as_a_message(client: Redis, prefix: str) -> None:
    here, there = counters(client, prefix), counters(client, prefix, poll_s=60.0)
    await there.ensure_loaded(["a"])
    listening = asyncio.create_task(there.run())
    await wait_for_subscriber(client, prefix)
    for _ in range(20):
        await here.increment(["a"])
        assert await until(lambda: there.known("a") == here.known("a"), 5) < 1.0
    await cancel(listening)


async def test_a_lost_message_is_made_up_for_by_polling(client: Redis, prefix: str) -> None:
    here, there = counters(client, prefix), counters(client, prefix)
    await there.ensure_loaded(["a"])
    await here.increment(["a"])  # before the other process listens
    listening = asyncio.create_task(there.run())
    await until(lambda: there.known("a") == here.known("a"), 5)
    # A value that was written without a message.
    await client.set(f"{prefix}:a", here.known("a") + 5)
    await until(lambda: there.known("a") == here.known("a") + 5, 5)
    await cancel(listening)


async def test_counters_are_read_where_a_process_may_not_subscribe(
    redis_server: tuple[str, subprocess.Popen[bytes]], prefix: str
) -> None:
    client = connect(redis_server[0], DEADLINE_S)
    await client.execute_command("ACL", "SETUSER", "default", "-subscribe")
    here, there = counters(client, prefix), counters(client, prefix)
    await there.ensure_loaded(["a"])
    listening = asyncio.create_task(there.run())
    for _ in range(3):
        await here.increment(["a"])
        await until(lambda: there.known("a") == here.known("a"), 5)
    await cancel(listening)
    await client.aclose()


async def test_an_increment_that_could_not_be_sent_is_sent_when_redis_is_available_again(
    redis_on: Callable[[int], tuple[str, subprocess.Popen[bytes]]], prefix: str
) -> None:
    port = free_port()
    client = connect(f"redis://127.0.0.1:{port}", DEADLINE_S)
    other = connect(f"redis://127.0.0.1:{port}", DEADLINE_S)
    here, there = counters(client, prefix), counters(other, prefix)
    assert not await here.ensure_loaded(["a"])
    await here.increment(["a"])
    local = here.known("a")
    assert local > 0
    tasks = [asyncio.create_task(each.run()) for each in (here, there)]
    redis_on(port)
    await until(lambda: there.ensure_loaded(["a"]), 10)
    await until(lambda: here.known("a") > local and there.known("a") == here.known("a"), 10)
    before = here.known("a")
    await client.flushall()  # Redis loses its data; the counter continues above the value that processes know
    await here.increment(["a"])
    assert here.known("a") > before
    await until(lambda: there.known("a") == here.known("a"), 10)
    await cancel(*tasks)
    await client.aclose()
    await other.aclose()


async def test_other_messages_on_the_channel_are_ignored(client: Redis, prefix: str) -> None:
    here, there = counters(client, prefix), counters(client, prefix, poll_s=60.0)
    await there.ensure_loaded(["a"])
    listening = asyncio.create_task(there.run())
    await wait_for_subscriber(client, prefix)
    for message in (b"hello", b"a minus", b"\xff 1", b"a 99999999999999999999999", b""):
        await client.publish(prefix, message)
    await here.increment(["a"])
    await until(lambda: there.known("a") == here.known("a"), 5)
    await cancel(listening)


async def test_a_counter_with_an_increment_that_was_not_sent_means_nothing_to_other_processes(
    redis_server: tuple[str, subprocess.Popen[bytes]], prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = connect(redis_server[0], DEADLINE_S)
    here = RedisInvalidationCounters(
        GuardedRedis(client, DEADLINE_S), GuardedRedis(client, DEADLINE_S), prefix, poll_s=60.0
    )
    assert await here.ensure_loaded(["a", "b"])
    os.kill(redis_server[1].pid, signal.SIGSTOP)
    assert await here.ensure_loaded(["a", "b"])
    await here.increment(["a"])
    assert here.known("a") == 1
    assert not await here.ensure_loaded(["a", "b"])
    assert await here.ensure_loaded(["b"])
    await here.flush(0.2)
    assert "invalidation of 1 names was not sent" in caplog.text
    os.kill(redis_server[1].pid, signal.SIGCONT)
    await here.flush(5.0)
    assert await here.ensure_loaded(["a", "b"])
    await client.aclose()


async def test_an_increment_while_another_one_is_sent_is_sent_too(client: Redis, prefix: str) -> None:
    here = counters(client, prefix)
    await asyncio.gather(*(here.increment(["a"]) for _ in range(20)))
    assert await here.ensure_loaded(["a"])  # false if any increment was not sent
    last = here.known("a")
    late = counters(client, prefix)
    assert await late.ensure_loaded(["a"])
    assert late.known("a") == last


async def test_a_thousand_concurrent_lookups_wait_for_a_slot_and_do_not_open_the_circuit(
    client: Redis, prefix: str
) -> None:
    """More lookups than connections. The deadline is long, because the machine may be busy with something else."""
    level = RedisLevel(GuardedRedis(client, 10.0), prefix.encode())
    await put(level, b"k", stored := entry())
    assert await asyncio.gather(*(level.get(b"k", time()) for _ in range(1_000))) == [stored] * 1_000
    assert (level.state, level.stats.errors) == ("closed", 0)


async def test_a_call_that_is_cancelled_at_any_moment_ends(client: Redis) -> None:
    redis = GuardedRedis(client, 10.0)

    async def call() -> None:
        async with redis.call() as connected:
            await connected.mget(["a", "b"])
        await asyncio.Event().wait()  # a task that has lost its cancellation waits here for ever

    for rounds in range(20):
        for _ in range(10):
            task = asyncio.create_task(call())
            for _ in range(rounds):
                await asyncio.sleep(0)
            task.cancel()
            assert await asyncio.wait([task], timeout=10.0) == ({task}, set())
            assert task.cancelled()
