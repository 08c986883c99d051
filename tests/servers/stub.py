"""Servers that fail in one way each."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_RESET = struct.pack("ii", 1, 0)
"""``SO_LINGER`` of zero seconds: closing resets the connection."""
_TURNS_TO_ACCEPT = 2
"""Turns of the event loop from accepting a connection to its handler; asyncio leaves a socket open otherwise."""


@asynccontextmanager
async def stub(serve: Serve) -> AsyncIterator[int]:
    """A server that calls ``serve`` for each connection; its port."""

    open_: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_[asyncio.create_task(serve_and_close(reader, writer))] = writer

    async def serve_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.get_running_loop().remove_reader(server.sockets[0])
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        server.close()
        for task in open_:
            task.cancel()
        await asyncio.gather(*open_, return_exceptions=True)
        for writer in open_.values():  # a task that was cancelled before it began has closed nothing
            writer.transport.abort()
        await asyncio.sleep(0)  # then the transports are closed


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection instead of closing it."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def http(status: str, body: bytes, length: int | None = None) -> Serve:
    """An HTTP server that sends the same response to every request; ``length`` is the length that its header states."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length or len(body)}\r\n"
        writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
        await writer.drain()

    return serve
