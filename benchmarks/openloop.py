"""An open-loop load generator: requests start when they are due, whether or not earlier ones have been answered.

Latency counts from the moment that a request was due, not from when a connection was free to send it, so a server
that stalls is charged for everybody who had to wait (Tene: "How NOT to Measure Latency", coordinated omission).
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, TypeAlias, cast

import uvloop

_CONNECTIONS = 128
_IDLE_S = 3.0
"""Seconds after which a connection is not used again: the service hangs up after five."""
_GOOD = 200
_SAMPLED = 16
"""One answer in so many is kept, to be read after the run."""

Load: TypeAlias = "Callable[[float, float], Result]"
"""Offers so many requests a second, for so many seconds."""

_Request: TypeAlias = tuple[float, bytes]
"""When it is due, and what is sent."""


class Answer(NamedTuple):
    """One answer: when it was due and how long it took from then, in seconds and ms; 0 if the connection was lost."""

    due_s: float
    ms: float
    status: int
    body: bytes | None
    """Of some, as they were asked to be kept."""


@dataclass(slots=True)
class Result:
    """One run: what was offered, in requests a second; how long it took; every answer, in the order they came."""

    offered: float
    seconds: float = 0.0
    answers: list[Answer] = field(default_factory=list)

    @property
    def latencies(self) -> list[float]:
        """Of good answers, in ms."""
        return [answer.ms for answer in self.answers if answer.status == _GOOD]

    @property
    def failures(self) -> int:
        """Answers that were not good."""
        return sum(answer.status != _GOOD for answer in self.answers)

    @property
    def bodies(self) -> list[bytes]:
        """Of good answers, those that were kept."""
        return [answer.body for answer in self.answers if answer.body is not None and answer.status == _GOOD]

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Latency in ms that this share of good answers did not exceed."""
        return percentile(self.latencies, share)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of ``values`` does not exceed; infinite if there are none."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("inf")


def offer(
    port: int,
    path: str,
    bodies: Sequence[bytes],
    rate: float,
    seconds: float,
    seed: int,
    sampled: int = _SAMPLED,
    key: str = "",
) -> Result:
    """POST ``bodies`` in turn to 127.0.0.1 at ``rate`` a second on average (Poisson), for ``seconds``.

    :param sampled: one answer in so many is kept, to be read after the run.
    :param key: of the API, where it has keys.
    """
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"authorization: Bearer {key}\r\n" if key else ""
    return uvloop.run(_offer(port, head, bodies, rate, seconds, seed, sampled))


async def _offer(
    port: int, head: str, bodies: Sequence[bytes], rate: float, seconds: float, seed: int, sampled: int
) -> Result:
    run = _Run(port, Result(rate), sampled)
    for _ in range(_CONNECTIONS):
        await run.connect()
    run.began = began = perf_counter()
    dice, at, number = random.Random(seed), 0.0, 0
    while (at := at + dice.expovariate(rate)) < seconds:
        wait = began + at - perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        body = bodies[number % len(bodies)]
        run.ask((began + at, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body))
        number += 1
    while len(run.result.answers) < number:
        run.done.clear()
        await run.done.wait()
    run.result.seconds = perf_counter() - began
    for connection in run.idle:
        connection.close()
    return run.result


class _Run:
    """One run: what is due, who is idle, the last to have been busy on top."""

    def __init__(self, port: int, result: Result, sampled: int) -> None:
        self.result = result
        self.sampled = sampled
        self.began = 0.0
        self.due: deque[_Request] = deque()
        self.idle: list[_Connection] = []
        self.open = 0
        self.done = asyncio.Event()
        """Set at every answer."""
        self._port = port
        self._connecting: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """One connection more."""
        self.open += 1
        await asyncio.get_running_loop().create_connection(lambda: _Connection(self), "127.0.0.1", self._port)

    def ask(self, request: _Request) -> None:
        """Send it, on a connection that was busy lately, as soon as there is one."""
        while self.idle:
            connection = self.idle.pop()
            if perf_counter() - connection.since < _IDLE_S:
                connection.send(request)
                return
            connection.close()
        self.due.append(request)
        if self.open < _CONNECTIONS:
            task = asyncio.ensure_future(self.connect())
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)


class _Connection(asyncio.Protocol):
    """One keep-alive connection: sends a request, reads its answer, takes the next that is due.

    Not :mod:`asyncio`'s streams: they cost three times as much, and the service pays for it with its own processor.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._transport: asyncio.WriteTransport
        self._at = 0.0
        self._busy = False
        self._answer = bytearray()
        self._expected = 0
        self.since = 0.0
        """When it became idle."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # which uvloop's is, in all but name
        self._next()

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
        self._run.open -= 1
        if self in self._run.idle:
            self._run.idle.remove(self)
        if self._busy:  # in the middle of an answer
            self._note(0, None)

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def _finish(self) -> None:
        kept = len(self._run.result.answers) % self._run.sampled == 0
        body = bytes(self._answer[self._answer.find(b"\r\n\r\n") + 4 :]) if kept else None
        self._note(int(self._answer[9:12]), body)
        self._answer, self._expected = bytearray(), 0
        self._next()

    def _next(self) -> None:
        if self._run.due:
            self.send(self._run.due.popleft())
        else:
            self.since = perf_counter()
            self._run.idle.append(self)

    def _note(self, status: int, body: bytes | None) -> None:
        run = self._run
        self._busy = False
        run.result.answers.append(Answer(self._at - run.began, (perf_counter() - self._at) * 1_000, status, body))
        run.done.set()
