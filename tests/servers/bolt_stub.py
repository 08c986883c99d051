"""Servers that speak Bolt and know one response each. Bolt 4.4 and 5.2, PackStream 1."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tests.servers.stub import Serve

_SUCCESS, _RECORD, _IGNORED, _FAILURE = 0x70, 0x71, 0x7E, 0x7F
_HELLO, LOGON, _RESET, _RUN, _PULL = 0x01, 0x6A, 0x0F, 0x10, 0x3F
MEMGRAPH = "Neo4j/v5.11.0 compatible graph database server - Memgraph"
"""What Memgraph calls itself by default (its flag ``--bolt-server-name-for-init``)."""


def packed_value(value: object) -> bytes:
    """A value in PackStream 1."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return b"\xcb" + struct.pack(">q", value)
        case float():
            return b"\xc1" + struct.pack(">d", value)
        case str():
            return b"\xd2" + struct.pack(">I", len(value.encode())) + value.encode()
        case list():
            return b"\xd6" + struct.pack(">I", len(value)) + b"".join(map(packed_value, value))
        case dict():
            pairs = (packed_value(each) for pair in value.items() for each in pair)
            return b"\xda" + struct.pack(">I", len(value)) + b"".join(pairs)
        case _:
            raise TypeError(type(value))


def bolt_message(tag: int, value: object) -> bytes:
    body = b"\xb1" + bytes([tag]) + packed_value(value)
    chunks = [body[start : start + 65_535] for start in range(0, len(body), 65_535)]
    return b"".join(struct.pack(">H", len(chunk)) + chunk for chunk in chunks) + b"\0\0"


async def _message(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while length := struct.unpack(">H", await reader.readexactly(2))[0]:
        body += await reader.readexactly(length)
    return body


def graph_server(rows: Sequence[dict[str, Any]]) -> Serve:
    """A Bolt 4.4 server whose statements return these rows."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(b"\0\0\x04\x04")
        while True:
            body = await _message(reader)
            if not body:
                continue
            if body[1] == _RUN:
                writer.write(bolt_message(_SUCCESS, {"fields": list(rows[0]) if rows else []}))
            elif body[1] == _PULL:
                for row in rows:
                    writer.write(bolt_message(_RECORD, list(row.values())))
                writer.write(bolt_message(_SUCCESS, {"type": "r"}))
            else:
                writer.write(bolt_message(_SUCCESS, {"server": "Neo4j/5.26.0", "connection_id": "stub"}))
            await writer.drain()

    return serve


def failing_memgraph(code: str, message: str, at: int = _RUN) -> Serve:
    """A Memgraph, which speaks Bolt 5.2, that fails at each message of one kind.

    :param at: the tag of that message.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(b"\0\0\x02\x05")
        has_failed = False
        while True:
            body = await _message(reader)
            if not body:
                continue
            tag = body[1]
            if tag == at:
                writer.write(bolt_message(_FAILURE, {"code": code, "message": message}))
                has_failed = True
            elif tag == _HELLO:
                writer.write(bolt_message(_SUCCESS, {"server": MEMGRAPH, "connection_id": "bolt-1"}))
            elif has_failed and tag != _RESET:
                writer.write(struct.pack(">H", 2) + b"\xb0" + bytes([_IGNORED]) + b"\0\0")
            else:
                has_failed = False
                writer.write(bolt_message(_SUCCESS, {}))
            await writer.drain()

    return serve


def memgraph(rows: Mapping[str, Sequence[dict[str, Any]]], statements: list[str]) -> Serve:
    """A Memgraph, which speaks Bolt 5.2.

    :param rows: by statement; the others return none.
    :param statements: those that were run are added.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(b"\0\0\x02\x05")
        found: Sequence[dict[str, Any]] = ()
        while True:
            body = await _message(reader)
            if not body:
                continue
            if body[1] == _HELLO:
                writer.write(bolt_message(_SUCCESS, {"server": MEMGRAPH, "connection_id": "bolt-1"}))
                continue
            if body[1] == _RUN:
                statements.append(_text(body[2:]))
                found = rows.get(statements[-1], ())
                writer.write(bolt_message(_SUCCESS, {"fields": list(found[0]) if found else []}))
                continue
            if body[1] == _PULL:
                for row in found:
                    writer.write(bolt_message(_RECORD, list(row.values())))
            writer.write(bolt_message(_SUCCESS, {}))
            await writer.drain()

    return serve


def _text(packed: bytes) -> str:
    """The text at the beginning of PackStream data."""
    if packed[0] & 0xF0 == 0x80:
        return packed[1 : 1 + (packed[0] & 0x0F)].decode()
    size_bytes = 1 << packed[0] - 0xD0
    length = int.from_bytes(packed[1 : 1 + size_bytes], "big")
    return packed[1 + size_bytes : 1 + size_bytes + length].decode()
