"""One HTTP request: its id, and its body within a limit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from orchestrator.http.request_context import STATE_KEY
from tests.orchestrator.http.helpers import Exchange, respond_ok

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("given_id", "is_used"),
    [
        (b"my-id_1", True),
        (b"a" * 128, True),
        (b"with space", False),
        (b"a" * 129, False),
        (b"\xe9", False),
        (b"", False),
    ],
)
async def test_the_request_id_of_the_client_is_used_if_it_is_a_plain_word(given_id: bytes, is_used: bool) -> None:
    exchange = await Exchange(respond_ok, [(b"x-request-id", given_id)]).run()
    returned = exchange.header(b"x-request-id")
    assert returned
    assert (returned == given_id) is is_used


async def test_two_requests_without_an_id_get_different_ones() -> None:
    first, second = await Exchange(respond_ok).run(), await Exchange(respond_ok).run()
    assert first.header(b"x-request-id") != second.header(b"x-request-id")


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=6), st.integers(0, 30), st.booleans())
async def test_a_body_is_read_whole_if_and_only_if_it_is_within_its_limit(
    chunks: list[bytes], max_bytes: int, is_declared: bool
) -> None:
    whole = b"".join(chunks)
    read: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        read.append(await scope["state"][STATE_KEY].body(max_bytes))
        await respond_ok(scope, receive, send)

    incoming = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks[:-1]]
    incoming.append({"type": "http.request", "body": chunks[-1], "more_body": False})
    headers = [(b"content-length", b"%d" % len(whole))] if is_declared else [(b"transfer-encoding", b"chunked")]
    exchange = await Exchange(app, headers, incoming, "POST").run()
    if len(whole) <= max_bytes:
        assert (exchange.status, read) == (200, [whole])
    else:
        assert (exchange.status, read) == (413, [])
        detail = json.loads(exchange.sent[1]["body"])["detail"]
        size = f"{len(whole)} bytes, allowed are" if is_declared else "more than the"
        assert size in detail
        assert str(max_bytes) in detail


async def test_a_declared_length_above_the_limit_is_refused_before_anything_is_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await scope["state"][STATE_KEY].body(8)

    exchange = await Exchange(app, [(b"content-length", b"9")], [], "POST").run()  # reading would find no message
    assert exchange.status == 413
