"""An open-loop load generator: requests start when they are due, whether or not earlier ones have been answered.

Latency counts from the moment that a request was due, not from when a connection was free to send it, so a server
that stalls is charged for everybody who had to wait (Tene: "How NOT to Measure Latency", coordinated omission).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

_CONNECTIONS = 128
_SAMPLED = 16
"""One answer in so many is kept, to be read after the run."""


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


async def run(port: int, path: str, bodies: Sequence[bytes], rate: float, seconds: float, seed: int) -> Result:
    """POST ``bodies`` in turn to 127.0.0.1 at ``rate`` a second on average (Poisson), for ``seconds``."""
    result = Result(rate)
    due: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
    workers = [asyncio.create_task(_connection(port, path, due, result)) for _ in range(_CONNECTIONS)]
    await asyncio.sleep(0.2)  # connections are made before the clock starts
    dice, began, at, number = random.Random(seed), perf_counter(), 0.0, 0
    while (at := at + dice.expovariate(rate)) < seconds:
        wait = began + at - perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        due.put_nowait((began + at, bodies[number % len(bodies)]))
        number += 1
    for _ in workers:
        due.put_nowait(None)
    await asyncio.gather(*workers)
    result.seconds = perf_counter() - began
    return result


async def _connection(port: int, path: str, due: asyncio.Queue[tuple[float, bytes] | None], result: Result) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (request := await due.get()) is not None:
        at, body = request
        writer.write(
            f"POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        if head.startswith(b"HTTP/1.1 200"):
            result.latencies.append((perf_counter() - at) * 1_000)
            if len(result.latencies) % _SAMPLED == 0:
                result.bodies.append(answer)
        else:
            result.failures += 1
    writer.close()
