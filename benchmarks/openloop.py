"""An open-loop load generator: requests are sent when they are due, whether or not earlier ones were answered.

Latency is measured from the time at which a request was due, not from the time at which a connection was free. So the
delay of every request that waits for a stalled server is included (Tene: "How NOT to Measure Latency", coordinated
omission).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, TypeAlias, cast

import uvloop

_MAX_CONNECTIONS = 128
_MAX_IDLE_S = 3.0
"""Seconds after which an idle connection is not used again: the service closes it after five."""
_SUCCESS = 200
_SAMPLE_EVERY = 16
"""The body of one response in this number is stored."""

Load: TypeAlias = "Callable[[float, float], Result]"
"""Sends requests at a rate (in requests per second) for a number of seconds."""

_Request: TypeAlias = tuple[float, bytes]
"""The time at which it is due, and its bytes."""


class Response(NamedTuple):
    """One response: ``due_s``: when its request was due, in seconds; ``ms``: the time from then until it was complete.

    ``status`` is 0 if the connection was lost. ``body`` is stored for a sample only.
    """

    due_s: float
    ms: float
    status: int
    body: bytes | None


@dataclass(slots=True)
class Result:
    """One run: requests sent per second, seconds until the last response, all responses in the order of arrival."""

    offered: float
    seconds: float = 0.0
    responses: list[Response] = field(default_factory=list)
    by_connection: Counter[int] = field(default_factory=Counter)
    """The number of responses, by the client's port."""

    @property
    def latencies(self) -> list[float]:
        """The times of successful responses, in ms."""
        return [response.ms for response in self.responses if response.status == _SUCCESS]

    @property
    def failures(self) -> int:
        """Number of responses that were not successful."""
        return sum(response.status != _SUCCESS for response in self.responses)

    @property
    def bodies(self) -> list[bytes]:
        """The stored bodies of successful responses."""
        return [each.body for each in self.responses if each.body is not None and each.status == _SUCCESS]

    @property
    def rate(self) -> float:
        """Successful responses per second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, fraction: float) -> float:
        """The latency in ms that this fraction of the successful responses did not exceed."""
        return percentile(self.latencies, fraction)


def percentile(values: Sequence[float], fraction: float) -> float:
    """The value that this fraction of ``values`` does not exceed; infinite if there are none."""
    ordered = sorted(values)
    return ordered[min(int(fraction * len(ordered)), len(ordered) - 1)] if ordered else float("inf")


def offer(
    port: int,
    path: str,
    bodies: Sequence[bytes],
    rate: float,
    seconds: float,
    seed: int,
    *,
    sample_every: int = _SAMPLE_EVERY,
    api_key: str = "",
    before_close: Callable[[], None] = lambda: None,
) -> Result:
    """POST ``bodies`` in order to 127.0.0.1 at a mean ``rate`` per second (Poisson process), for ``seconds``.

    :param sample_every: the body of one response in this number is stored.
    :param before_close: called after the last response, while all connections are open.
    """
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"authorization: Bearer {api_key}\r\n" if api_key else ""
    run = _Run(port, Result(rate), sample_every)
    uvloop.run(_offer(run, head, bodies, seconds, seed, before_close))
    return run.result


async def _offer(
    run: _Run, head: str, bodies: Sequence[bytes], seconds: float, seed: int, before_close: Callable[[], None]
) -> None:
    for _ in range(_MAX_CONNECTIONS):
        await run.connect()
    run.start = start = perf_counter()
    rng, due_s, number = random.Random(seed), 0.0, 0
    while (due_s := due_s + rng.expovariate(run.result.offered)) < seconds:
        wait_s = start + due_s - perf_counter()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        body = bodies[number % len(bodies)]
        run.send((start + due_s, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body))
        number += 1
    run.result.offered = number / seconds  # a few per cent from the requested mean, as in any Poisson process
    while len(run.result.responses) < number:
        run.response_received.clear()
        await run.response_received.wait()
    run.result.seconds = perf_counter() - start
    before_close()
    for connection in run.idle:
        connection.close()


class _Run:
    """One run. ``due``: requests without a connection; ``idle``: free connections, the last used one at the end.

    Requests use the connections one after another, so that each process behind them gets its share.
    """

    def __init__(self, port: int, result: Result, sample_every: int) -> None:
        self.result = result
        self.sample_every = sample_every
        self.start = 0.0
        self.due: deque[_Request] = deque()
        self.idle: deque[_Connection] = deque()
        self.open = 0
        self.response_received = asyncio.Event()
        self._port = port
        self._connecting: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Open one more connection."""
        self.open += 1
        await asyncio.get_running_loop().create_connection(lambda: _Connection(self), "127.0.0.1", self._port)

    def send(self, request: _Request) -> None:
        """Send a request as soon as a connection is free, on the one that was not used for the longest time."""
        while self.idle:
            connection = self.idle.popleft()
            if perf_counter() - connection.idle_since < _MAX_IDLE_S:
                connection.send(request)
                return
            connection.close()
        self.due.append(request)
        if self.open < _MAX_CONNECTIONS:
            task = asyncio.ensure_future(self.connect())
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)


class _Connection(asyncio.Protocol):
    """One persistent connection: sends a request, reads its response, takes the next request that is due.

    Not the streams of :mod:`asyncio`: they need three times as much CPU time, which the service would lack.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._transport: asyncio.WriteTransport
        self._port = 0
        self._due_at = 0.0
        self._busy = False
        self._received = bytearray()
        self._expected_bytes = 0
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._port = transport.get_extra_info("sockname")[1]
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's class is not derived from it
        self._next()

    def send(self, request: _Request) -> None:
        """Send one request; only after the response to the last one was received."""
        self._due_at, content = request
        self._busy = True
        self._transport.write(content)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._expected_bytes:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._received[:end]).lower()
            self._expected_bytes = end + 4 + int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(self._received) >= self._expected_bytes:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._run.open -= 1
        if self in self._run.idle:
            self._run.idle.remove(self)
        if self._busy:  # the response is not complete
            self._record(0, None)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _finish(self) -> None:
        is_sampled = len(self._run.result.responses) % self._run.sample_every == 0
        body = bytes(self._received[self._received.find(b"\r\n\r\n") + 4 :]) if is_sampled else None
        self._record(int(self._received[9:12]), body)
        self._received, self._expected_bytes = bytearray(), 0
        self._next()

    def _next(self) -> None:
        if self._run.due:
            self.send(self._run.due.popleft())
        else:
            self.idle_since = perf_counter()
            self._run.idle.append(self)

    def _record(self, status: int, body: bytes | None) -> None:
        run = self._run
        self._busy = False
        ms = (perf_counter() - self._due_at) * 1_000
        run.result.by_connection[self._port] += 1
        run.result.responses.append(Response(self._due_at - run.start, ms, status, body))
        run.response_received.set()
