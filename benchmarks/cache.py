"""What the cache promises: no stale answer, one flight a key, a Redis that stands still, the cost of a hit, its bound.

Two services in processes of their own, on one index and one real Redis (Debian's redis-server must be there). One line
a claim, with what was measured; ends with 1 if one did not hold.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.claims import say
from benchmarks.openloop import Result, offer
from benchmarks.service import python, service
from cache import Entry, Memory, redis
from cache.generations import Generations
from tests.servers.start import free_port, redis_on

_ROUNDS, _REQUESTS = 60, 100
_POLL_MS, _FOLLOW_MS, _L2_MS = 1_000, 100, 20
_ASKED = {"query": "who directed the film", "mode": "hybrid", "limit": 10, "timeout_ms": 5_000}
_TEXTS = ("A film about two magicians.", "The director of the film was born in London.", "A star near the sun.")


def main() -> None:
    """Measure all of it."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--writes", type=int, default=1_000)
    arguments.add_argument("--keys", type=int, default=1_000_000)
    asked = arguments.parse_args()
    held = [_bounded(asked.keys)]
    with ExitStack() as running:
        url, process = running.enter_context(redis_on(free_port()))
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        settings = _settings(folder, url)
        services = [running.enter_context(service(settings, folder / f"{number}.log")) for number in range(2)]
        ports = [each.port for each in services]
        _post(
            ports[0], "/v1/documents", "\n".join(json.dumps({"id": f"t{n}", "text": t}) for n, t in enumerate(_TEXTS))
        )
        held += [_told(url, asked.writes), _flights(ports[0]), _cost(ports[0])]
        held += [_stopped(ports[0], process), _staleness(ports, asked.writes)]
    raise SystemExit(0 if all(held) else 1)


def _bounded(keys: int) -> bool:
    """Memory of this process while so many distinct answers go through a cache of 64 MiB."""
    memory = Memory(64 * 2**20)
    before = _resident()
    for number in range(keys):
        memory.put(b"%016d" % number, Entry(b"x" * (1_000 + number % 4_000), 0.0, 60.0, 60.0))
    grown = _resident() - before
    bounded = memory.bytes <= 64 * 2**20 and grown <= 1.25 * 64 * 2**20
    told = f"{memory.bytes / 2**20:.1f} MiB counted, {grown / 2**20:.1f} MiB more in the process, {len(memory)} kept"
    return say(bounded, f"64 MiB stay 64 MiB over {keys:,} distinct keys", told)


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _flights(port: int) -> bool:
    """A thousand equal requests at once, each on a connection that is open already, nothing kept."""
    before = _cache(port)
    body = json.dumps(_ASKED | {"query": "never asked before"}).encode()
    request = f"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    answered = asyncio.run(_at_once(port, request, 1_000))
    after = _cache(port)
    searched = {name: after[name]["misses"] - before[name]["misses"] for name in ("vector", "graph", "keyword")}
    holds = answered == 1_000 and set(searched.values()) == {1}
    return say(holds, "1,000 equal requests at once, one search of each source", f"{answered} answered, {searched}")


async def _at_once(port: int, request: bytes, count: int) -> int:
    """How many of so many equal requests are answered with 200."""
    links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in links:
        writer.write(request)
    heads = await asyncio.gather(*(reader.readuntil(b"\r\n") for reader, _ in links))
    for _, writer in links:
        writer.close()
    return sum(head.startswith(b"HTTP/1.1 200") for head in heads)


def _told(url: str, writes: int) -> bool:
    """How soon another machine knows of a write, by Redis alone."""

    async def measure() -> list[float]:
        clients = [redis.connect(url, 1.0) for _ in range(2)]
        guards = [redis.Guarded(client, 1.0) for client in clients]
        here, there = (Generations(guard, guard, "bench:written", _POLL_MS / 1_000) for guard in guards)
        await there.learn(["scope"])
        listening = asyncio.create_task(there.run())
        lags = []
        for _ in range(writes):
            await here.bump(["scope"])
            began = time.perf_counter()
            while there.known("scope") < here.known("scope"):  # noqa: ASYNC110  # nothing tells when it has learnt
                await asyncio.sleep(0)
            lags.append((time.perf_counter() - began) * 1_000)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        for client in clients:
            await client.aclose()
        return sorted(lags)

    lags = asyncio.run(measure())
    middle, late, last = (lags[int(share * (len(lags) - 1))] for share in (0.5, 0.99, 1.0))
    bound = _POLL_MS + 1_000
    told = f"p50 {middle:.1f}, p99 {late:.1f}, most {last:.0f} ms"
    return say(last <= bound, f"{writes:,} writes, another machine knows of each within {bound} ms", told)


def _cost(port: int) -> bool:
    """A hit of ours against a FastAPI endpoint that returns the same bytes, in turn, one request after the other."""
    body = json.dumps(_ASKED).encode()
    _post(port, "/v1/search", body)
    answer = _post(port, "/v1/search", body)
    with _fastapi(answer) as other:
        times: dict[int, list[float]] = {port: [], other: []}
        with ExitStack() as open_:
            links = {each: open_.enter_context(socket.create_connection(("127.0.0.1", each))) for each in times}
            head = f"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
            for _ in range(_ROUNDS):
                for each, link in links.items():
                    began = time.perf_counter()
                    for _ in range(_REQUESTS):
                        _exchange(link, head.encode() + body)
                    times[each].append((time.perf_counter() - began) / _REQUESTS * 1e6)
    ours, theirs = (statistics.median(times[each]) for each in (port, other))
    told = f"{ours:.0f} µs against {theirs:.0f} µs, ratio {ours / theirs:.2f}, {len(answer)} bytes"
    return say(ours / theirs <= 1.5, "an L1 hit costs at most 1.5 times FastAPI's from memory", told)


def _exchange(link: socket.socket, request: bytes) -> None:
    """In one packet, so that nobody waits for a second; the answer to its end."""
    link.sendall(request)
    answer = link.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += link.recv(65_536)


def _stopped(port: int, process: subprocess.Popen[bytes]) -> bool:
    """New questions at a steady rate, while Redis stands still and goes on."""
    dice = random.Random(1)

    def load(seconds: float) -> Result:
        bodies = [json.dumps(_ASKED | {"query": f"film {dice.random()}"}).encode() for _ in range(3_000)]
        return offer(port, "/v1/search", bodies, rate=60, seconds=seconds, seed=dice.randrange(99))

    usual = load(8)
    os.kill(process.pid, signal.SIGSTOP)
    stopped = load(8)
    os.kill(process.pid, signal.SIGCONT)
    began = time.perf_counter()
    while _cache(port)["l2"]["state"] != "closed" and time.perf_counter() - began < 30:
        _post(port, "/v1/search", json.dumps(_ASKED | {"query": f"film {dice.random()}"}).encode())
        time.sleep(0.02)
    back = time.perf_counter() - began
    grown = stopped.percentile(0.95) - usual.percentile(0.95)
    told = f"p95 {usual.percentile(0.95):.1f} ms, then {stopped.percentile(0.95):.1f} ms; {stopped.failures} failures; "
    holds = grown < _L2_MS and not stopped.failures and back < 2
    return say(
        holds, "Redis stands still: p95 grows by less than its 20 ms, no failure", f"{told}back after {back:.2f} s"
    )


def _staleness(ports: list[int], writes: int) -> bool:
    """Write to one service, then read from it and from the other."""
    here, there = ports
    stale = 0
    lags: list[float] = []
    body = json.dumps({"query": "counter", "mode": "keyword", "limit": 1, "timeout_ms": 5_000}).encode()
    for number in range(writes):
        _post(here, "/v1/documents", json.dumps({"id": "counter", "text": f"counter {number}"}).encode())
        acknowledged = time.perf_counter()
        stale += _says(here, body) != f"counter {number}"
        while _says(there, body) != f"counter {number}":
            if time.perf_counter() - acknowledged > 60:
                raise SystemExit("the other service never learnt of a write")
        lags.append((time.perf_counter() - acknowledged) * 1_000)
    bound = max(_POLL_MS + 10 * _L2_MS, _FOLLOW_MS) + 200  # and what a read and opening the new version take
    lags.sort()
    middle, late, last = (lags[int(share * (len(lags) - 1))] for share in (0.5, 0.99, 1.0))
    told = f"{stale} stale where it was written; elsewhere p50 {middle:.0f}, p99 {late:.0f}, most {last:.0f} ms"
    return say(not stale and last <= bound, f"{writes:,} writes, none older than {bound} ms", told)


def _says(port: int, body: bytes) -> str:
    hits = json.loads(_post(port, "/v1/search", body))["hits"]
    return hits[0]["text"] if hits else ""


def _cache(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/cache", timeout=30) as answer:
        levels: dict[str, Any] = json.load(answer)["levels"]
    return {name: {"misses": 0, "state": "closed"} | level for name, level in levels.items()}


def _post(port: int, path: str, body: bytes | str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)  # our own service
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        content: bytes = answer.read()
    return content


def _settings(folder: Path, redis: str) -> dict[str, object]:
    return {
        "data_dir": folder / "data",
        "cache": redis,
        "cache_poll_ms": _POLL_MS,
        "cache_timeout_ms": _L2_MS,
        "follow_ms": _FOLLOW_MS,
        "source_timeout_ms": 2_000,  # a thousand connections at once are work, too
    }


@contextmanager
def _fastapi(answer: bytes) -> Iterator[int]:
    """An endpoint as FastAPI's documentation has it, on the same server."""
    program = (
        "import sys, uvicorn\n"
        "from fastapi import FastAPI, Response\n"
        "app, kept = FastAPI(), sys.stdin.buffer.read()\n"
        "@app.post('/v1/search')\n"
        "async def search() -> Response:\n"
        "    return Response(kept, media_type='application/json')\n"
        "uvicorn.run(app, port=int(sys.argv[1]), log_level='warning', access_log=False)\n"
    )
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as kept:
        kept.write(answer)
        kept.seek(0)
        with python(["-c", program, str(port)], port, "/openapi.json", Path(folder, "log"), {}, kept):
            yield port


if __name__ == "__main__":
    main()
