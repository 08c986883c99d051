"""Connections whose client disconnects, sends late, sends more than one request, or does not read."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import uvicorn

from adapters import Document
from orchestrator.indexing.ndjson import ValidLine
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import response_statuses, serving_here, until

pytestmark = pytest.mark.anyio

_CLIENT_TIMEOUT_S = 0.5

BODY = json.dumps({"query": "alpha", "timeout_ms": 60_000}).encode()
SEARCH = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"


@dataclass
class PausedServer:
    """A server whose searches wait until ``resume`` is set."""

    server: uvicorn.Server
    service: Service
    is_started: asyncio.Event = field(default_factory=asyncio.Event)
    is_ended: asyncio.Event = field(default_factory=asyncio.Event)
    resume: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.config.port)

    @property
    def running(self) -> int:
        """Number of requests that are being processed."""
        return len(self.server.server_state.tasks)


@pytest.fixture
async def paused(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[PausedServer]:
    settings = chosen.changed(client_timeout_ms=int(_CLIENT_TIMEOUT_S * 1_000))
    async with serving_here(settings, monkeypatch) as (server, app), asyncio.timeout(30):
        paused_server = PausedServer(server, app.state.service)
        search = paused_server.service.search
        retrieve = search.retrieval.retrieve

        async def retrieve_when_resumed(*arguments: Any) -> object:
            paused_server.is_started.set()
            try:
                await paused_server.resume.wait()
            finally:
                paused_server.is_ended.set()
            return await retrieve(*arguments)

        monkeypatch.setattr(search.retrieval, "retrieve", retrieve_when_resumed)
        yield paused_server
    assert "Exception in ASGI" not in caplog.text
    assert search.admission.running == search.admission.waiting == 0


@pytest.mark.parametrize("others", [0, 1])
async def test_a_disconnect_cancels_the_search_unless_another_client_waits_for_it(
    paused: PausedServer, others: int
) -> None:
    connections = [await paused.connect() for _ in range(1 + others)]
    for _, writer in connections:
        writer.write(SEARCH)
    await paused.is_started.wait()
    await until(lambda: paused.running == 1 + others)
    _, first = connections[0]
    first.close()
    if others:
        await until(lambda: paused.running == others)
        assert not paused.is_ended.is_set()
        paused.resume.set()
        assert (await connections[1][0].readline()).startswith(b"HTTP/1.1 200")
    else:
        await paused.is_ended.wait()
    for _, writer in connections:
        writer.close()


async def test_a_request_behind_a_running_one_closes_the_connection_after_its_response(paused: PausedServer) -> None:
    """So that a connection needs no more memory, however many requests a client sends without reading."""
    reader, writer = await paused.connect()
    writer.write(SEARCH + LIVEZ * 1_000)
    await paused.is_started.wait()
    (protocol,) = paused.server.server_state.connections
    assert len(protocol.pipeline) == 0
    paused.resume.set()
    received = await reader.read()
    assert response_statuses(received) == [200]
    assert b"connection: close" in received
    writer.close()


async def test_a_chunked_body_of_http_1_0_is_refused(paused: PausedServer) -> None:
    """A proxy of that version sees the end of the body elsewhere (RFC 9112, section 6.1)."""
    reader, writer = await paused.connect()
    writer.write(b"POST /v1/search HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
    assert response_statuses(await reader.read()) == [400]
    writer.close()


async def test_requests_one_after_the_other_share_a_connection(paused: PausedServer) -> None:
    reader, writer = await paused.connect()
    for _ in range(3):
        writer.write(LIVEZ)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"connection: close" not in head
        await reader.readexactly(len(b'{"live":true}'))
    writer.close()


async def test_blank_lines_behind_a_request_leave_the_connection_idle(paused: PausedServer) -> None:
    paused.server.config.timeout_keep_alive = 1
    reader, writer = await paused.connect()
    writer.write(LIVEZ + b"\r\n\r\n")
    assert response_statuses(await asyncio.wait_for(reader.read(), 10)) == [200]
    writer.close()


async def test_a_blank_line_after_a_response_is_the_start_of_a_request(paused: PausedServer) -> None:
    """So its time limit begins: uvicorn's timer for idle connections stops."""
    reader, writer = await paused.connect()
    writer.write(LIVEZ)
    await reader.readuntil(b'{"live":true}')
    writer.write(b"\r\n")
    assert response_statuses(await asyncio.wait_for(reader.read(), 10)) == [408]
    writer.close()


async def test_a_disconnect_cancels_the_running_request_even_if_another_is_queued_behind_it(
    paused: PausedServer,
) -> None:
    _, writer = await paused.connect()
    writer.write(SEARCH + LIVEZ)
    await paused.is_started.wait()
    writer.close()
    await paused.is_ended.wait()
    await until(lambda: paused.running == 0)


@pytest.mark.parametrize(
    "behind",
    [
        b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n",
        b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{",
        b"nonsense\r\n\r\n",
    ],
    ids=["no chunk", "half a body", "not HTTP"],
)
async def test_invalid_data_behind_a_request_does_not_become_its_response(paused: PausedServer, behind: bytes) -> None:
    reader, writer = await paused.connect()
    writer.write(SEARCH + behind)
    await paused.is_started.wait()
    await asyncio.sleep(2 * _CLIENT_TIMEOUT_S)  # its time limit expires meanwhile
    paused.resume.set()
    assert response_statuses(await reader.read()) == [200]
    writer.close()


async def test_the_time_in_which_the_server_does_not_read_does_not_count_for_the_client(paused: PausedServer) -> None:
    """A bulk request of more than what is buffered unread, while every slot for writes is taken."""
    resume, writes = asyncio.Event(), paused.service.documents.writes

    async def occupy_slot() -> None:
        async with writes.slot("others", 60):
            await resume.wait()

    others = [asyncio.ensure_future(occupy_slot()) for _ in range(8)]
    document = b'{"id":"a","text":"alpha"}\n'
    reader, writer = await paused.connect()
    size = len(document) * 100_000
    writer.write(b"POST /v1/documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % size)
    writer.write(document + b" " * (size - len(document)))
    await until(lambda: writes.waiting == 1)
    await asyncio.sleep(2 * _CLIENT_TIMEOUT_S)  # its time limit would expire
    resume.set()
    await asyncio.gather(*others)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


@pytest.mark.parametrize(("path", "status"), [(b"/nowhere", 404), (b"/livez", 405)])
async def test_an_error_reaches_a_client_that_is_still_sending(paused: PausedServer, path: bytes, status: int) -> None:
    size = 20_000_000
    reader, writer = await paused.connect()
    writer.write(b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (path, size))
    writer.write(b" " * size)
    await writer.drain()
    assert response_statuses(await reader.read()) == [status]
    writer.close()


async def test_a_client_that_does_not_read_is_disconnected(paused: PausedServer) -> None:
    """Its response is more than the buffers of the kernel."""
    unexpected: list[object] = []
    lines = [ValidLine(1, Document(id="large", text="a" * 990_000))]
    await paused.service.documents.index(lines, paused.service.anonymous, unexpected.append)
    loop = asyncio.get_running_loop()
    request = b"GET /v1/documents/large HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", paused.server.config.port))
        await loop.sock_sendall(connection, request)
        await until(lambda: bool(paused.server.server_state.connections))
        await until(lambda: not paused.server.server_state.connections)
    await until(lambda: paused.running == 0)
    assert not paused.server.server_state.connections
    assert not unexpected


async def test_a_client_that_reads_a_byte_now_and_then_is_disconnected(paused: PausedServer) -> None:
    """One that reads at the minimum rate gets all of a response that takes it several times the time limit."""
    state = paused.server.config.loaded_app.state
    state.connection_limits = replace(state.connection_limits, min_read_bytes_per_s=20_000)
    unexpected: list[object] = []
    lines = [ValidLine(1, Document(id="large", text="a" * 990_000))]
    await paused.service.documents.index(lines, paused.service.anonymous, unexpected.append)

    async def read(size: int) -> int:
        """Bytes that are received if at most this many are read every 10 ms."""
        received = 0
        with socket.socket() as connection, suppress(ConnectionError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, ("127.0.0.1", paused.server.config.port))
            request = b"GET /v1/documents/large HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            await loop.sock_sendall(connection, request)
            while content := await loop.sock_recv(connection, size):
                received += len(content)
                await asyncio.sleep(0.01)
        return received

    slow = asyncio.ensure_future(read(1))
    assert await read(5_000) > 990_000
    await until(lambda: not paused.server.server_state.connections)
    assert not slow.done()  # it reads what its kernel has received
    slow.cancel()
    with suppress(asyncio.CancelledError):
        await slow
    assert not unexpected


@pytest.mark.parametrize("path", ["POST /v1/search", "POST /v1/documents", "DELETE /v1/documents", "POST /nowhere"])
@pytest.mark.parametrize("is_reset", [True, False])
async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(
    paused: PausedServer, path: str, is_reset: bool
) -> None:
    """The fixture checks that nothing is raised."""
    _, writer = await paused.connect()
    writer.write(f"{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n".encode() + b"{" * 50_000)
    await writer.drain()
    await until(lambda: bool(paused.server.server_state.connections))
    if is_reset:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()
    await until(lambda: not paused.server.server_state.connections)
    await until(lambda: paused.running == 0)


async def test_a_response_of_several_parts_is_whole_on_a_connection_that_is_used_again(paused: PausedServer) -> None:
    lines = [ValidLine(1, Document(id="large", text="a" * 500_000))]
    await paused.service.documents.index(lines, paused.service.anonymous, pytest.fail)
    reader, writer = await paused.connect()
    for _ in range(3):
        writer.write(b"GET /v1/documents/large HTTP/1.1\r\nhost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert json.loads(await reader.readexactly(size))["text"] == "a" * 500_000
    writer.close()


async def test_responses_that_wait_for_the_rate_leave_their_connections_to_new_ones(paused: PausedServer) -> None:
    state = paused.server.config.loaded_app.state
    state.connection_limits = replace(state.connection_limits, max_connections=3, client_timeout_s=30.0)
    state.unkeyed_rate.is_exceeded = lambda: True
    waiting = [await paused.connect() for _ in range(3)]
    for _, writer in waiting:
        writer.write(b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await until(lambda: paused.running == 3)
    reader, writer = await paused.connect()
    writer.write(LIVEZ)
    assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)).startswith(b"HTTP/1.1 200")
    for each in (writer, *(writer for _, writer in waiting)):
        each.close()


async def test_a_connection_above_the_limit_is_refused_until_another_is_closed(paused: PausedServer) -> None:
    state, connections = paused.server.config.loaded_app.state, paused.server.server_state.connections
    state.connection_limits = replace(state.connection_limits, max_connections=3, client_timeout_s=5.0)
    busy = [await paused.connect() for _ in range(3)]
    for _, busy_writer in busy:
        busy_writer.write(SEARCH)
    await until(lambda: paused.running == 3)
    reader, writer = await paused.connect()
    writer.write(LIVEZ)
    received = await reader.read()
    writer.close()
    assert response_statuses(received) == [503]
    assert json.loads(received.partition(b"\r\n\r\n")[2])["detail"] == "there are more connections than allowed"
    busy[0][1].close()
    await until(lambda: len(connections) == 2)
    reader, writer = await paused.connect()
    writer.write(LIVEZ.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    assert response_statuses(await reader.read()) == [200]
    for _, open_writer in (*busy[1:], (reader, writer)):
        open_writer.close()


async def test_connections_that_never_send_their_body_leave_their_place_to_new_ones(paused: PausedServer) -> None:
    state = paused.server.config.loaded_app.state
    state.connection_limits = replace(state.connection_limits, max_connections=3, client_timeout_s=30.0)
    waiting = [await paused.connect() for _ in range(3)]
    for _, writer in waiting:
        writer.write(b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
    await until(lambda: sum(bool(each.cycle) for each in paused.server.server_state.connections) == 3)
    reader, writer = await paused.connect()
    writer.write(LIVEZ)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    assert head.startswith(b"HTTP/1.1 200")
    for each in (writer, *(writer for _, writer in waiting)):
        each.close()


async def test_connections_without_a_request_leave_their_place_to_new_ones(paused: PausedServer) -> None:
    """Half-open connections must not shut out probes; the one that has waited longest is closed."""
    state = paused.server.config.loaded_app.state
    state.connection_limits = replace(state.connection_limits, max_connections=3, client_timeout_s=30.0)
    busy_reader, busy = await paused.connect()
    busy.write(SEARCH)
    await asyncio.wait_for(paused.is_started.wait(), 5)
    idle = [await paused.connect() for _ in range(2)]
    idle[1][1].write(b"GET /livez HT")  # an incomplete request line
    await until(lambda: len(paused.server.server_state.connections) == 3)
    writers = [busy, *(writer for _, writer in idle)]
    for _ in range(4):
        reader, writer = await paused.connect()
        writers.append(writer)
        writer.write(LIVEZ)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        assert head.startswith(b"HTTP/1.1 200")
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(idle[0][0].readexactly(1), 5)
    paused.resume.set()
    assert (await asyncio.wait_for(busy_reader.readuntil(b"\r\n\r\n"), 5)).startswith(b"HTTP/1.1 200")
    for writer in writers:
        writer.close()
