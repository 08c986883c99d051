"""An open-loop load generator: requests start when they are due, whether or not earlier ones have been answered.

Latency counts from the moment that a request was due, not from when a connection was free to send it, so a server
that stalls is charged for everybody who had to wait (Tene: "How NOT to Measure Latency", coordinated omission).
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeAlias, cast

import uvloop

_CONNECTIONS = 128
_SAMPLED = 16
"""One answer in so many is kept, to be read after the run."""

_Request: TypeAlias = tuple[float, bytes]
"""When it is due, and what is sent."""


@dataclass(slots=True)
class Result:
    """One run: latencies in ms, of good answers; what went wrong; and a sample of bodies."""

    offered: float
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    failures: int = 0
    bodies: list[bytes] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Latency in ms that this share of good answers did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("inf")


def offer(port: int, path: str, bodies: Sequence[bytes], rate: float, seconds: float, seed: int) -> Result:
    """POST ``bodies`` in turn to 127.0.0.1 at ``rate`` a second on average (Poisson), for ``seconds``."""
    return uvloop.run(_offer(port, path, bodies, rate, seconds, seed))


async def _offer(port: int, path: str, bodies: Sequence[bytes], rate: float, seconds: float, seed: int) -> Result:
    loop = asyncio.get_running_loop()
    result = Result(rate)
    due: deque[_Request] = deque()
    idle: deque[_Connection] = deque()
    done = asyncio.Event()
    connections = [
        (await loop.create_connection(lambda: _Connection(result, due, idle, done), "127.0.0.1", port))[1]
        for _ in range(_CONNECTIONS)
    ]
    dice, began, at, number = random.Random(seed), perf_counter(), 0.0, 0
    while (at := at + dice.expovariate(rate)) < seconds:
        wait = began + at - perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        body = bodies[number % len(bodies)]
        head = f"POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        request = began + at, head.encode() + b"\r\n\r\n" + body
        number += 1
        if idle:
            idle.popleft().send(request)
        else:
            due.append(request)
    while len(result.latencies) + result.failures < number:
        done.clear()
        await done.wait()
    result.seconds = perf_counter() - began
    for connection in connections:
        connection.close()
    return result


class _Connection(asyncio.Protocol):
    """One keep-alive connection: sends a request, reads its answer, takes the next that is due.

    Not :mod:`asyncio`'s streams: they cost three times as much, and the service pays for it with its own processor.
    """

    def __init__(self, result: Result, due: deque[_Request], idle: deque[_Connection], done: asyncio.Event) -> None:
        self._result, self._due, self._idle, self._done = result, due, idle, done
        self._transport: asyncio.WriteTransport
        self._at = 0.0
        self._busy = False
        self._answer = bytearray()
        self._expected = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # which uvloop's is, in all but name
        self._idle.append(self)

    def send(self, request: _Request) -> None:
        """Send one; only when the answer to the last has come."""
        self._at, body = request
        self._busy = True
        self._transport.write(body)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not self._expected:
            end = self._answer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._answer[:end]).lower()
            self._expected = end + 4 + int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(self._answer) >= self._expected:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        if self._busy:  # in the middle of an answer
            self._busy = False
            self._result.failures += 1
            self._done.set()

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def _finish(self) -> None:
        result = self._result
        if self._answer.startswith(b"HTTP/1.1 200"):
            result.latencies.append((perf_counter() - self._at) * 1_000)
            if len(result.latencies) % _SAMPLED == 0:
                result.bodies.append(bytes(self._answer[self._answer.find(b"\r\n\r\n") + 4 :]))
        else:
            result.failures += 1
        self._answer, self._expected, self._busy = bytearray(), 0, False
        self._done.set()
        if self._due:
            self.send(self._due.popleft())
        else:
            self._idle.append(self)
