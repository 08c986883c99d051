"""A TCP proxy that does to a backend's answers what networks and broken servers do; in a process of its own."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal, TypeAlias, get_args

import uvloop

Fault: TypeAlias = Literal["killed", "hung", "slow", "dropping", "resetting", "truncating", "corrupting"]
"""``killed``: nobody listens, and what was open is reset. ``hung``: connections are taken, and nothing ever comes.
``slow``: every answer is late. ``dropping``: of every second piece of an answer nothing comes, the connection stays.
``resetting``, ``truncating``: every second piece of an answer ends in a reset, or in half of it and a plain end.
``corrupting``: one byte in 64 is another."""
FAULTS: tuple[Fault, ...] = get_args(Fault)

_CORRUPTED = 64
_RESET = struct.pack("ii", 1, 0)
"""``SO_LINGER`` of no seconds: closing resets."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a proxy is to do from now on; nothing at all if ``fault`` is none."""

    fault: Fault | None = None
    delay_s: float = 0.0


class Proxy:
    """Stands between ``port`` and the backend at ``target``, on 127.0.0.1."""

    def __init__(self, port: int, orders: Connection) -> None:
        self.port = port
        self._orders = orders

    def be(self, fault: Fault | None, delay_s: float = 0.0) -> None:
        """Do this from now on, to connections that are open, too."""
        self._orders.send(Order(fault, delay_s))
        self._orders.recv()  # it is so


@contextmanager
def proxy(port: int, target: int) -> Iterator[Proxy]:
    """A proxy, until the end."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(port, target, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.recv()
    try:
        yield Proxy(port, ours)
    finally:
        process.terminate()
        process.join(10)


def _serve(port: int, target: int, orders: Connection) -> None:
    uvloop.run(_Proxy(port, target).run(orders))


class _Proxy:
    def __init__(self, port: int, target: int) -> None:
        self._port, self._target = port, target
        self._order = Order()
        self._open: set[asyncio.StreamWriter] = set()
        self._dice = random.Random(port)

    async def run(self, orders: Connection) -> None:
        """Obey, until whoever gives orders is gone."""
        server = await self._listen()
        orders.send("ready")
        while True:
            try:
                self._order = await asyncio.to_thread(orders.recv)
            except EOFError:
                return
            if server:
                if self._order.fault == "killed":
                    server.close()
                    server = None
            elif self._order.fault != "killed":
                server = await self._listen()
            if self._order.fault == "killed":
                for each in list(self._open):
                    _reset(each)
            orders.send("done")

    async def _listen(self) -> asyncio.Server | None:
        return await asyncio.start_server(self._relay, "127.0.0.1", self._port, reuse_address=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _reset(writer)
            return
        both = {writer, back_writer}
        self._open |= both
        pumps = [
            asyncio.ensure_future(self._ask(reader, back_writer)),
            asyncio.ensure_future(self._answer(back_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in pumps:
                each.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for each in both:
                each.close()
            self._open -= both

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            if self._order.fault != "hung":
                writer.write(piece)
                await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            unlucky = self._dice.random() < 0.5
            match self._order.fault:
                case "hung":
                    continue
                case "dropping" if unlucky:
                    continue
                case "slow":
                    await asyncio.sleep(self._order.delay_s)
                case "resetting" if unlucky:
                    _reset(writer)
                    return
                case "truncating" if unlucky:
                    writer.write(piece[: len(piece) // 2])
                    await writer.drain()
                    return
                case "corrupting":
                    piece = self._corrupted(piece)
                case _:
                    pass
            writer.write(piece)
            await writer.drain()

    def _corrupted(self, piece: bytes) -> bytes:
        changed = bytearray(piece)
        for place in range(len(changed)):
            if self._dice.randrange(_CORRUPTED) == 0:
                changed[place] = self._dice.randrange(256)
        return bytes(changed)


def _reset(writer: asyncio.StreamWriter) -> None:
    link = writer.get_extra_info("socket")
    if link is not None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
