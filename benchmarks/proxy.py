"""A TCP proxy, in a separate process, that causes the faults of networks and of broken servers."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal, TypeAlias, get_args

import uvloop

from tests.servers.stub import reset

Fault: TypeAlias = Literal["killed", "hung", "slow", "dropping", "resetting", "truncating", "corrupting"]
"""``killed``: connections are refused, and open ones are reset. ``hung``: connections are accepted, and nothing is
forwarded. ``slow``: responses are delayed. ``dropping``: every second block of a response is dropped, and the
connection stays open. ``resetting`` and ``truncating``: at every second block of a response the connection is reset, or
closed after half of the block. ``corrupting``: one byte in 64 is changed."""
FAULTS: tuple[Fault, ...] = get_args(Fault)

_CORRUPTED_EVERY = 64
_BLOCK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class FaultCommand:
    """The fault that a proxy has to cause from now on, if any."""

    fault: Fault | None = None
    delay_s: float = 0.0


class Proxy:
    """Forwards ``port`` to a server, both on 127.0.0.1."""

    def __init__(self, port: int, commands: Connection) -> None:
        self.port = port
        self._commands = commands

    def cause(self, fault: Fault | None, delay_s: float = 0.0) -> None:
        """Cause a fault from now on, also on open connections; returns when it is in effect."""
        self._commands.send(FaultCommand(fault, delay_s))
        self._commands.recv()


@contextmanager
def proxy(port: int, target: int) -> Iterator[Proxy]:
    """A running proxy.

    :param target: port of the server.
    """
    parent_end, child_end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(port, target, child_end), daemon=True)
    process.start()
    child_end.close()
    parent_end.recv()
    try:
        yield Proxy(port, parent_end)
    finally:
        process.terminate()
        process.join(10)


def _serve(port: int, target: int, commands: Connection) -> None:
    uvloop.run(_Forwarder(port, target).run(commands))


class _Forwarder:
    def __init__(self, port: int, target: int) -> None:
        self._port, self._target = port, target
        self._command = FaultCommand()
        self._open: set[asyncio.StreamWriter] = set()
        self._rng = random.Random(port)

    async def run(self, commands: Connection) -> None:
        """Execute commands until the other end of ``commands`` is closed."""
        server = await self._listen()
        commands.send("ready")
        while True:
            try:
                self._command = await asyncio.to_thread(commands.recv)
            except EOFError:
                return
            if server:
                if self._command.fault == "killed":
                    server.close()
                    server = None
            elif self._command.fault != "killed":
                server = await self._listen()
            if self._command.fault == "killed":
                for writer in list(self._open):
                    reset(writer)
            commands.send("done")

    async def _listen(self) -> asyncio.Server | None:
        return await asyncio.start_server(self._forward, "127.0.0.1", self._port, reuse_address=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            backend_reader, backend_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            reset(writer)
            return
        both = {writer, backend_writer}
        self._open |= both
        directions = [
            asyncio.ensure_future(self._forward_requests(reader, backend_writer)),
            asyncio.ensure_future(self._forward_responses(backend_reader, writer)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            for each in both:
                each.close()
            self._open -= both

    async def _forward_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while block := await reader.read(_BLOCK_BYTES):
            if self._command.fault != "hung":
                writer.write(block)
                await writer.drain()

    async def _forward_responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while block := await reader.read(_BLOCK_BYTES):
            is_affected = self._rng.random() < 0.5
            match self._command.fault:
                case "hung":
                    continue
                case "dropping" if is_affected:
                    continue
                case "slow":
                    await asyncio.sleep(self._command.delay_s)
                case "resetting" if is_affected:
                    reset(writer)
                    return
                case "truncating" if is_affected:
                    writer.write(block[: len(block) // 2])
                    await writer.drain()
                    return
                case "corrupting":
                    block = self._corrupted(block)
                case _:
                    pass
            writer.write(block)
            await writer.drain()

    def _corrupted(self, block: bytes) -> bytes:
        changed = bytearray(block)
        for index in range(len(changed)):
            if self._rng.randrange(_CORRUPTED_EVERY) == 0:
                changed[index] = self._rng.randrange(256)
        return bytes(changed)
