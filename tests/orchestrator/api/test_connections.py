"""What becomes of a request is up to its connection: who hangs up, sends late, sends more, or does not read."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from orchestrator.api.app import create
from orchestrator.settings import Settings
from orchestrator.wiring import Service
from tests.servers.start import free_port

pytestmark = pytest.mark.anyio

_PATIENCE_S = 0.5

BODY = json.dumps({"query": "alpha", "timeout_ms": 60_000}).encode()
SEARCH = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"


@dataclass
class Held:
    """A service whose searches wait until they are let go."""

    server: uvicorn.Server
    service: Service
    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.config.port)

    async def no_more_tasks_than(self, count: int) -> None:
        while len(self.server.server_state.tasks) > count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
async def held(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Held]:
    app = create(chosen.model_copy(update={"receive_timeout_ms": int(_PATIENCE_S * 1_000)}))
    config = uvicorn.Config(
        app, port=free_port(), http="orchestrator.api.protocol:Bounded", proxy_headers=False, ws="none", log_config=None
    )
    server = uvicorn.Server(config)
    monkeypatch.setattr(server, "capture_signals", nullcontext)
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    made = Held(server, app.state.service)
    search = made.service.engine.search

    async def watched(*arguments: Any) -> object:
        made.began.set()
        try:
            await made.go_on.wait()
        finally:
            made.ended.set()
        return await search(*arguments)

    monkeypatch.setattr(made.service.engine, "search", watched)
    async with asyncio.timeout(30):
        yield made
        server.should_exit = True
        await serving
    assert "Exception in ASGI" not in caplog.text
    assert made.service.searches.working == made.service.searches.waiting == 0


def statuses(answer: bytes) -> list[int]:
    return [int(each[:3]) for each in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize("others", [0, 1])
async def test_who_hangs_up_ends_its_search_unless_somebody_else_waits_for_it(held: Held, others: int) -> None:
    links = [await held.connect() for _ in range(1 + others)]
    for _, writer in links:
        writer.write(SEARCH)
    await held.began.wait()
    while len(held.server.server_state.tasks) < 1 + others:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    _, first = links[0]
    first.close()
    if others:
        await held.no_more_tasks_than(others)
        assert not held.ended.is_set()
        held.go_on.set()
        assert (await links[1][0].readline()).startswith(b"HTTP/1.1 200")
    else:
        await held.ended.wait()
    for _, writer in links:
        writer.close()


async def test_who_hangs_up_with_a_request_waiting_behind_ends_the_one_that_is_worked_on(held: Held) -> None:
    _, writer = await held.connect()
    writer.write(SEARCH + LIVEZ)
    await held.began.wait()
    writer.close()
    await held.ended.wait()
    await held.no_more_tasks_than(0)


@pytest.mark.parametrize(
    "behind",
    [
        b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n",
        b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{",
        b"nonsense\r\n\r\n",
    ],
    ids=["no chunk", "half a body", "not HTTP"],
)
async def test_what_comes_behind_a_request_is_never_its_answer(held: Held, behind: bytes) -> None:
    reader, writer = await held.connect()
    writer.write(SEARCH + behind)
    await held.began.wait()
    await asyncio.sleep(2 * _PATIENCE_S)
    held.go_on.set()
    assert statuses(await reader.read()) == [200]
    writer.close()


async def test_time_in_which_we_do_not_read_is_not_the_callers(held: Held) -> None:
    """A bulk of more than what is taken unread, while all places of writes are taken."""
    go_on = asyncio.Event()
    others = [asyncio.ensure_future(held.service.writes.run("others", 60, go_on.wait)) for _ in range(8)]
    document = b'{"id":"a","text":"alpha"}\n'
    reader, writer = await held.connect()
    size = len(document) * 100_000
    writer.write(b"POST /v1/documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % size)
    writer.write(document + b" " * (size - len(document)))
    await asyncio.sleep(2 * _PATIENCE_S)
    go_on.set()
    await asyncio.gather(*others)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


@pytest.mark.parametrize(("path", "status"), [(b"/nowhere", 404), (b"/livez", 405)])
async def test_a_refusal_reaches_who_is_still_sending(held: Held, path: bytes, status: int) -> None:
    size = 20_000_000
    reader, writer = await held.connect()
    writer.write(b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (path, size))
    writer.write(b" " * size)
    await writer.drain()
    assert statuses(await reader.read()) == [status]
    writer.close()


async def test_who_does_not_read_is_not_waited_for(held: Held) -> None:
    loop = asyncio.get_running_loop()
    request = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        link.setblocking(False)
        await loop.sock_connect(link, ("127.0.0.1", held.server.config.port))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while True:
                await loop.sock_sendall(link, request * 100)
    await held.no_more_tasks_than(0)
    assert not held.server.server_state.connections
