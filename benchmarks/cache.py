"""``make bench-cache``: invalidation, one computation per key, a stopped Redis, the cost of a hit, the memory limit.

Two services in separate processes, with one index and one real Redis (Debian's redis-server is required). One line for
each claim, with what was measured; exit code 1 if one is false.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.claims import report
from benchmarks.openloop import Result, offer
from benchmarks.service import start_python, start_service
from cache import CacheEntry, MemoryLevel, redis
from cache.counters import RedisInvalidationCounters
from tests.servers.start import free_port, redis_on

_REPETITIONS, _REQUESTS = 60, 100
_L1_BYTES = 64 * 2**20
_POLL_MS = 1_000
"""Interval at which the service reads the counters."""
_REFRESH_MS, _L2_TIMEOUT_MS = 100, 20
_REQUEST = {"query": "who directed the film", "mode": "hybrid", "limit": 10, "timeout_ms": 5_000}
_TEXTS = ("A film about two magicians.", "The director of the film was born in London.", "A star near the sun.")


def main() -> None:
    """Measure every claim."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writes", type=int, default=1_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of the load with and without Redis")
    arguments = parser.parse_args()
    passed = [_memory_limit(arguments.keys)]
    with ExitStack() as stack:
        url, redis_process = stack.enter_context(redis_on(free_port()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = _settings(folder, url)
        services = [stack.enter_context(start_service(settings, folder / f"{number}.log")) for number in range(2)]
        ports = [each.port for each in services]
        lines = [json.dumps({"id": f"t{number}", "text": text}) for number, text in enumerate(_TEXTS)]
        _post(ports[0], "/v1/documents", "\n".join(lines))
        passed += [_counters(url, arguments.writes), _single_flight(ports[0]), _cost_of_a_hit(ports[0])]
        passed += [_stopped_redis(ports[0], redis_process, arguments.seconds), _invalidation(ports, arguments.writes)]
    raise SystemExit(0 if all(passed) else 1)


def _memory_limit(keys: int) -> bool:
    """Memory of this process while many distinct responses pass through a cache of 64 MiB."""
    memory = MemoryLevel(_L1_BYTES)
    before = _resident_bytes()
    for number in range(keys):
        memory.put(b"%016d" % number, CacheEntry(b"x" * (1_000 + number % 4_000), 0.0, 60.0, 60.0))
    growth = _resident_bytes() - before
    is_bounded = memory.size_bytes <= _L1_BYTES and growth <= 1.25 * _L1_BYTES
    measured = f"{memory.size_bytes / 2**20:.1f} MiB counted, the process grew by {growth / 2**20:.1f} MiB, "
    return report(
        is_bounded, f"64 MiB are not exceeded with {keys:,} distinct keys", f"{measured}{len(memory):,} entries"
    )


def _resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _single_flight(port: int) -> bool:
    """A thousand equal requests for a response that is not cached, each on a connection that is already open."""
    before = _cache_levels(port)
    body = json.dumps(_REQUEST | {"query": "never searched before"}).encode()
    request = f"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    succeeded = asyncio.run(_send_concurrently(port, request, 1_000))
    after = _cache_levels(port)
    searches = {name: after[name]["misses"] - before[name]["misses"] for name in ("vector", "graph", "keyword")}
    is_single = succeeded == 1_000 and set(searches.values()) == {1}
    claim = "1,000 equal concurrent requests cause one search of each source"
    return report(is_single, claim, f"{succeeded} succeeded, searches: {searches}")


async def _send_concurrently(port: int, request: bytes, count: int) -> int:
    """The number of equal requests whose response has status 200."""
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in connections:
        writer.write(request)
    heads = await asyncio.gather(*(reader.readuntil(b"\r\n") for reader, _ in connections))
    for _, writer in connections:
        writer.close()
    return sum(head.startswith(b"HTTP/1.1 200") for head in heads)


def _counters(url: str, writes: int) -> bool:
    """The delay until another process knows of a write, through Redis only."""

    async def measure() -> list[float]:
        clients = [redis.connect(url, 1.0) for _ in range(2)]
        guarded = [redis.GuardedRedis(client, 1.0) for client in clients]
        writer, reader = (RedisInvalidationCounters(each, each, "bench:written", _POLL_MS / 1_000) for each in guarded)
        await reader.ensure_loaded(["scope"])
        listening = asyncio.create_task(reader.run())
        delays_ms = []
        for _ in range(writes):
            await writer.increment(["scope"])
            start = time.perf_counter()
            while reader.known("scope") < writer.known("scope"):  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)
            delays_ms.append((time.perf_counter() - start) * 1_000)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        for client in clients:
            await client.aclose()
        return delays_ms

    delays_ms = asyncio.run(measure())
    bound_ms = _POLL_MS + 1_000
    claim = f"{writes:,} writes, another process knows of each within {bound_ms} ms"
    return report(max(delays_ms) <= bound_ms, claim, _distribution(delays_ms))


def _distribution(values_ms: Sequence[float]) -> str:
    ordered = sorted(values_ms)
    p50, p99, last = (ordered[int(fraction * (len(ordered) - 1))] for fraction in (0.5, 0.99, 1.0))
    return f"p50 {p50:.1f}, p99 {p99:.1f}, maximum {last:.0f} ms"


def _cost_of_a_hit(port: int) -> bool:
    """An L1 hit and a FastAPI endpoint that returns the same bytes, alternately, one request after the other."""
    body = json.dumps(_REQUEST).encode()
    _post(port, "/v1/search", body)
    response = _post(port, "/v1/search", body)
    with _fastapi(response) as fastapi_port:
        times_us: dict[int, list[float]] = {port: [], fastapi_port: []}
        with ExitStack() as stack:
            connections = {
                each: stack.enter_context(socket.create_connection(("127.0.0.1", each))) for each in times_us
            }
            head = f"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
            for _ in range(_REPETITIONS):
                for each, connection in connections.items():
                    start = time.perf_counter()
                    for _ in range(_REQUESTS):
                        _exchange(connection, head.encode() + body)
                    times_us[each].append((time.perf_counter() - start) / _REQUESTS * 1e6)
    service_us, fastapi_us = (statistics.median(times_us[each]) for each in (port, fastapi_port))
    ratio = service_us / fastapi_us
    measured = f"{service_us:.0f} µs and {fastapi_us:.0f} µs, ratio {ratio:.2f}, {len(response)} bytes"
    return report(ratio <= 1.5, "an L1 hit takes at most 1.5 times as long as FastAPI with a constant", measured)


def _exchange(connection: socket.socket, request: bytes) -> None:
    """Send a request in one packet, so that the server does not wait for a second one; read the whole response."""
    connection.sendall(request)
    received = connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)


def _stopped_redis(port: int, process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Distinct queries at a constant rate, while Redis runs, is stopped (SIGSTOP), and runs again."""
    rng = random.Random(1)

    def load() -> Result:
        bodies = [json.dumps(_REQUEST | {"query": f"film {rng.random()}"}).encode() for _ in range(3_000)]
        return offer(port, "/v1/search", bodies, rate=60, seconds=seconds, seed=rng.randrange(99))

    normal = load()
    os.kill(process.pid, signal.SIGSTOP)
    stopped = load()
    os.kill(process.pid, signal.SIGCONT)
    start = time.perf_counter()
    while _cache_levels(port)["l2"]["state"] != "closed" and time.perf_counter() - start < 30:
        _post(port, "/v1/search", json.dumps(_REQUEST | {"query": f"film {rng.random()}"}).encode())
        time.sleep(0.02)
    recovery_s = time.perf_counter() - start
    growth_ms = stopped.percentile(0.95) - normal.percentile(0.95)
    measured = f"p95 {normal.percentile(0.95):.1f} ms, then {stopped.percentile(0.95):.1f} ms; "
    measured += f"{stopped.failures} failures; used again after {recovery_s:.2f} s"
    is_small = growth_ms < _L2_TIMEOUT_MS and not stopped.failures and recovery_s < 2
    claim = f"Redis is stopped: p95 grows by less than its time limit of {_L2_TIMEOUT_MS} ms, without failures"
    return report(is_small, claim, measured)


def _invalidation(ports: Sequence[int], writes: int) -> bool:
    """Write to one service, then search on it and on the other."""
    writing_port, other_port = ports
    outdated = 0
    delays_ms: list[float] = []
    body = json.dumps({"query": "counter", "mode": "keyword", "limit": 1, "timeout_ms": 5_000}).encode()
    for number in range(writes):
        text = f"counter {number}"
        _post(writing_port, "/v1/documents", json.dumps({"id": "counter", "text": text}).encode())
        acknowledged = time.perf_counter()
        outdated += _first_text(writing_port, body) != text
        while _first_text(other_port, body) != text:
            if time.perf_counter() - acknowledged > 60:
                raise SystemExit("the other service does not return a write after 60 s")
        delays_ms.append((time.perf_counter() - acknowledged) * 1_000)
    bound_ms = max(_POLL_MS + 10 * _L2_TIMEOUT_MS, _REFRESH_MS) + 200  # for a search and opening the new index files
    measured = f"{outdated} outdated responses of the service that wrote; the other: {_distribution(delays_ms)}"
    claim = f"{writes:,} writes, no response is older than {bound_ms} ms"
    return report(not outdated and max(delays_ms) <= bound_ms, claim, measured)


def _first_text(port: int, body: bytes) -> str:
    hits = json.loads(_post(port, "/v1/search", body))["hits"]
    return hits[0]["text"] if hits else ""


def _cache_levels(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/cache", timeout=30) as response:
        levels: dict[str, Any] = json.load(response)["levels"]
    return {name: {"misses": 0, "state": "closed"} | level for name, level in levels.items()}


def _post(port: int, path: str, body: bytes | str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)  # the service under test
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
        content: bytes = response.read()
    return content


def _settings(folder: Path, redis_url: str) -> dict[str, object]:
    return {
        "data_dir": folder / "data",
        "cache": redis_url,
        "cache_timeout_ms": _L2_TIMEOUT_MS,
        "refresh_interval_ms": _REFRESH_MS,
        "source_timeout_ms": 2_000,  # a thousand concurrent connections take time
    }


@contextmanager
def _fastapi(content: bytes) -> Iterator[int]:
    """An endpoint as in FastAPI's documentation, on the same HTTP server."""
    program = (
        "import sys, uvicorn\n"
        "from fastapi import FastAPI, Response\n"
        "app, content = FastAPI(), sys.stdin.buffer.read()\n"
        "@app.post('/v1/search')\n"
        "async def search() -> Response:\n"
        "    return Response(content, media_type='application/json')\n"
        "uvicorn.run(app, port=int(sys.argv[1]), log_level='warning', access_log=False)\n"
    )
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as stdin:
        stdin.write(content)
        stdin.seek(0)
        with start_python(["-c", program, str(port)], port, "/openapi.json", Path(folder, "log"), {}, stdin):
            yield port


if __name__ == "__main__":
    main()
