"""Adapters of servers that misbehave on the wire raise an :class:`AdapterError`, and in time.

The servers here are stubs that fail; ``test_sources.py`` uses real servers.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import grpc
import pytest

from adapters import (
    AdapterError,
    BadResponse,
    ExecutionFailed,
    Rejected,
    TimedOut,
    Unavailable,
    VersionMismatch,
    Warming,
)
from adapters.graph.bolt import Bolt
from adapters.graph.memgraph import MemgraphGraph
from adapters.keyword import opensearch, opensearch_client
from adapters.ports import ServerSource, SourceQuery
from adapters.servers.server import GRAPH_SCHEMES, KEYWORD_SCHEMES, VECTOR_SCHEMES, Address, Limits
from adapters.vector import qdrant, qdrant_connection
from tests.adapters.source_fixtures import source_query
from tests.conftest import DIMENSION, SCOPE, vector_record
from tests.servers.start import free_port
from tests.servers.stub import Serve, http, stub

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
async def _one_loop(anyio_backend: str) -> AsyncIterator[None]:
    """One event loop for all tests here: gRPC reports cancelled calls to their loop after some time."""
    yield
    await asyncio.sleep(0.5)


LIMITS = Limits(read_timeout_s=0.4, write_timeout_s=0.6, max_connections=4)
SLACK_S = 1.0
QUOTED = "what_only_some_may_read"
"""A part of a document in what a server answers. No error shows it: neither callers nor the log may see it."""


def connected(url: str, limits: Limits = LIMITS) -> ServerSource:
    if url.startswith("qdrant"):
        client = qdrant_connection.connect(Address.parse(url, VECTOR_SCHEMES), None, limits)
        return qdrant.QdrantVector(client, "stub", DIMENSION, "t", limits)
    if url.startswith("opensearch"):
        address = Address.parse(url, KEYWORD_SCHEMES)
        return opensearch.OpenSearchKeyword(opensearch_client.connect(address, limits), "stub", "t", limits)
    return MemgraphGraph(Bolt(Address.parse(url, GRAPH_SCHEMES), limits), "stub", "t")


SCHEMES = ("qdrant+http", "qdrant+grpc", "opensearch+http", "bolt")
CALLS: dict[str, Callable[[ServerSource], Awaitable[Any]]] = {
    "search": lambda server: server.search(source_query()),
    "apply": lambda server: server.apply(1, [vector_record("a")], [("default", "default", "b")]),
    "check": lambda server: server.check(),
    "create": lambda server: server.create(),
    "count": lambda server: server.count(),
    "release": lambda server: server.release(),
}


async def error_of_call(url: str, call: str) -> AdapterError:
    """The error that a call raises, within its time limit."""
    server = connected(url)
    began = perf_counter()
    try:
        with pytest.raises(AdapterError) as caught:
            await CALLS[call](server)
    finally:
        await server.close()
    assert perf_counter() - began < LIMITS.write_timeout_s + SLACK_S
    assert QUOTED not in caught.value.for_operators
    return caught.value


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_no_server_listens(scheme: str, call: str) -> None:
    assert isinstance(await error_of_call(f"{scheme}://127.0.0.1:{free_port()}", call), (Unavailable, TimedOut))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_the_server_does_not_answer(scheme: str, call: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with stub(silent) as port:
        assert isinstance(await error_of_call(f"{scheme}://127.0.0.1:{port}", call), (TimedOut, Unavailable, Warming))


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_search_has_the_limit_of_searches_whatever_it_asks_first(scheme: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with stub(silent) as port:
        server = connected(f"{scheme}://127.0.0.1:{port}", replace(LIMITS, write_timeout_s=60.0))
        began = perf_counter()
        with pytest.raises((TimedOut, Unavailable, Warming)):
            await server.search(source_query())
        assert perf_counter() - began < LIMITS.read_timeout_s + SLACK_S
        await server.close()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("response", [b"", b"\x00\xff" * 100, b"SSH-2.0-OpenSSH_9.2\r\n"])
async def test_the_server_speaks_another_protocol(scheme: str, call: str, response: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(16)
        writer.write(response)
        await writer.drain()

    async with stub(other) as port:
        error = await error_of_call(f"{scheme}://127.0.0.1:{port}", call)
        assert isinstance(error, (Unavailable, BadResponse, TimedOut))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scheme", ["qdrant+http", "opensearch+http"])
@pytest.mark.parametrize(
    ("serve", "expected"),
    [
        (http("429 Too Many Requests", f'{{"error":"{QUOTED}"}}'.encode()), (Unavailable,)),
        (http("500 Internal Server Error", b"{}"), (ExecutionFailed,)),
        (http(f"503 {QUOTED}", b"<html>"), (Unavailable,)),
        (http("401 Unauthorized", b"{}"), (Unavailable,)),
        (http("400 Bad Request", f'{{"error":{{"type":"a_exception","reason":"{QUOTED}"}}}}'.encode()), (Rejected,)),
        (http("200 OK", f"<html>{QUOTED}</html>".encode()), (BadResponse,)),
        (http("200 OK", f'{{"unexpected": "{QUOTED}", "{QUOTED}": 1}}'.encode()), (BadResponse, VersionMismatch)),
        (http("200 OK", f'["{QUOTED}", 2'.encode()), (BadResponse,)),
        (http("200 OK", f'{{"{QUOTED}":'.encode(), length=500), (Unavailable, BadResponse)),
    ],
    ids=["429", "500", "503", "401", "400", "a web page", "another shape", "truncated JSON", "closes early"],
)  # fmt: skip
async def test_http_statuses_and_bodies(scheme: str, call: str, serve: Serve, expected: tuple[type, ...]) -> None:
    async with stub(serve) as port:
        assert isinstance(await error_of_call(f"{scheme}://127.0.0.1:{port}", call), expected)


LIMITS_OF_QDRANT = [
    "Max points count limit of 20 reached!",
    "Max vector storage size limit of 0.5MB reached!",
    "Max payload storage size limit of 0.5MB reached!",
    "Resident memory usage is at 91% of total memory, exceeding the configured limit of 90%. Help: Reduce it.",
]
"""Messages of Qdrant 1.18 in its strict mode: ``lib/collection/src/operations/verification`` in its source."""


@pytest.mark.parametrize("call", ["search", "apply", "count"])
@pytest.mark.parametrize("message", LIMITS_OF_QDRANT)
async def test_a_limit_of_qdrant_is_no_fault_of_a_request(call: str, message: str) -> None:
    """The same write succeeds when the operator has raised the limit: it waits, and is not set aside."""
    assert await errors_of_qdrant(message, call) == {Unavailable}


async def test_too_many_points_in_a_request_are_sent_in_smaller_ones() -> None:
    """A refused request is divided, an unavailable server is waited for."""
    message = 'Limit exceeded 3 > 2 for "upsert limit". Help: Reduce the "upsert limit" parameter to or below 2.'
    assert await errors_of_qdrant(message, "apply") == {Rejected}


async def errors_of_qdrant(message: str, call: str) -> set[type]:
    """The kinds of errors for a message, over REST and gRPC."""
    body = json.dumps({"status": {"error": f"Bad request: {message}"}, "time": 0.1}).encode()
    async with stub(http("400 Bad Request", body)) as port:
        rest = await error_of_call(f"qdrant+http://127.0.0.1:{port}", call)
    async with refusing(grpc.StatusCode.INVALID_ARGUMENT, f"Bad request: {message}") as port:
        return {type(rest), type(await error_of_call(f"qdrant+grpc://127.0.0.1:{port}", call))}


@asynccontextmanager
async def refusing(code: grpc.StatusCode, message: str) -> AsyncIterator[int]:
    """A gRPC server that refuses every call; its port."""

    class Refuses(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            async def refuse(request: bytes, context: Any) -> None:
                await context.abort(code, message)

            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Refuses(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@pytest.mark.parametrize("call", ["search", "apply", "count"])
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Unavailable),
        (grpc.StatusCode.UNAVAILABLE, Unavailable),
        (grpc.StatusCode.UNAUTHENTICATED, Unavailable),
        (grpc.StatusCode.NOT_FOUND, Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, TimedOut),
        (grpc.StatusCode.INVALID_ARGUMENT, Rejected),
        (grpc.StatusCode.INTERNAL, ExecutionFailed),
        (grpc.StatusCode.UNIMPLEMENTED, BadResponse),
    ],
)
async def test_grpc_statuses(call: str, code: grpc.StatusCode, expected: type) -> None:
    async with refusing(code, QUOTED) as port:
        error = await error_of_call(f"qdrant+grpc://127.0.0.1:{port}", call)
        assert isinstance(error, expected)
        assert code.name in error.for_operators


def packed(tag: int, **fields: str) -> bytes:
    """A Bolt message with one map of texts, in one chunk (Bolt 4.4, PackStream 1)."""
    text = b"".join(b"\xd0" + struct.pack("B", len(each)) + each.encode() for pair in fields.items() for each in pair)
    body = b"\xb1" + bytes([tag, 0xA0 + len(fields)]) + text
    return struct.pack(">H", len(body)) + body + b"\0\0"


def bolt(answer: bytes) -> Serve:
    """A Bolt 4.4 server that accepts the connection and then answers everything with one message."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(b"\0\0\x04\x04")
        greeted = False
        while await reader.read(65_536):
            writer.write(answer if greeted else packed(0x70, server="Neo4j/5.26.0", connection_id="stub"))
            greeted = True
            await writer.drain()
            if not answer:
                return

    return serve


@pytest.mark.parametrize("call", ["search", "apply", "count"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (packed(0x7F, code="Neo.TransientError.General.DatabaseUnavailable", message=QUOTED), (Unavailable, TimedOut)),
        (
            packed(
                0x7F,
                code="Memgraph.TransientError.MemgraphError.MemgraphError",
                message="because of transaction timeout",
            ),
            (TimedOut,),
        ),
        (packed(0x7F, code="Neo.ClientError.Transaction.TransactionTimedOut", message=QUOTED), (TimedOut,)),
        (packed(0x7F, code="Neo.ClientError.Statement.SyntaxError", message=QUOTED), (Rejected,)),
        (packed(0x7F, code="Neo.ClientError.Security.Unauthorized", message=QUOTED), (Unavailable,)),
        (packed(0x7F, code="Memgraph.TransientError.MemgraphError.MemgraphError", message=QUOTED), (Unavailable,)),
        (packed(0x7F, code="Neo.DatabaseError.General.UnknownError", message=QUOTED), (Unavailable,)),
        (b"\0\x03\xb1\x01\xff\0\0", (BadResponse, Unavailable)),
        (b"", (Unavailable, TimedOut)),
    ],
    ids=[
        "unavailable",
        "timeout of Memgraph",
        "timeout of Neo4j",
        "syntax",
        "password",
        "memory of Memgraph",
        "unknown error",
        "garbage",
        "closes",
    ],
)
async def test_bolt_messages(call: str, answer: bytes, expected: tuple[type, ...]) -> None:
    async with stub(bolt(answer)) as port:
        assert isinstance(await error_of_call(f"bolt://127.0.0.1:{port}", call), expected)


async def test_a_bolt_server_without_a_common_protocol_version() -> None:
    async def older(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(b"\0\0\0\0")
        await writer.drain()

    async with stub(older) as port:
        assert isinstance(await error_of_call(f"bolt://127.0.0.1:{port}", "search"), (Unavailable, BadResponse))


async def test_a_vector_of_another_length_is_rejected_before_it_is_sent() -> None:
    server = connected("qdrant+http://127.0.0.1:1")
    query = source_query()
    for vector in (None, query.vector[:-1] if query.vector is not None else None):
        with pytest.raises(Rejected):
            await server.search(SourceQuery("x", 1, SCOPE, query.access, query.filter, vector))
    await server.close()
