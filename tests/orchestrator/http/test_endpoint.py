"""The boundary around every request: one log line, closed connections, and no exception that escapes."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters import Unavailable
from orchestrator.auth.principal import Forbidden
from orchestrator.execution.stage_results import AllSourcesFailed, Failed
from orchestrator.http.endpoint import RequestBoundary, endpoint_of
from orchestrator.http.errors import HttpError
from orchestrator.http.request_context import STATE_KEY, HttpContext
from orchestrator.http.routes import DELETE_DOCUMENT, LIVENESS, OPERATIONS
from orchestrator.planning.errors import BadRequest
from orchestrator.service.errors import Overloaded
from tests.orchestrator.http.helpers import Exchange, ndjson, problem, respond_ok, search

pytestmark = pytest.mark.anyio


def _raising(error: BaseException) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return app


async def test_the_line_is_written_when_the_whole_response_was_sent(log_lines: list[dict[str, Any]]) -> None:
    """The client does not wait for it."""
    lines_before: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        lines_before.append(len(log_lines))
        await send({"type": "http.response.body", "body": b"text"})
        lines_before.append(len(log_lines))

    await Exchange(app).run()
    assert lines_before == [0, 0]
    assert [line["status"] for line in log_lines] == [200]


async def test_an_error_before_the_response_becomes_a_problem_with_one_log_line(
    log_lines: list[dict[str, Any]],
) -> None:
    exchange = await Exchange(_raising(Forbidden("no")), [(b"x-request-id", b"id-1")]).run()
    assert exchange.status == 403
    assert json.loads(exchange.sent[1]["body"])["request_id"] == "id-1"
    (line,) = log_lines
    assert (line["request_id"], line["method"], line["path"], line["status"]) == ("id-1", "GET", "unknown", 403)


async def test_an_error_after_the_start_of_the_response_is_raised_so_that_the_connection_is_closed(
    log_lines: list[dict[str, Any]],
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    exchange = Exchange(app)
    with pytest.raises(ZeroDivisionError):
        await exchange.run()
    assert [message["type"] for message in exchange.sent] == ["http.response.start"]
    assert [line["status"] for line in log_lines] == [200]


@pytest.mark.parametrize("is_disconnected", [False, True])
async def test_a_cancellation_is_a_499_if_the_client_disconnected_else_a_503(
    is_disconnected: bool, log_lines: list[dict[str, Any]]
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][STATE_KEY].is_disconnected = is_disconnected
        raise asyncio.CancelledError

    exchange = Exchange(app)
    if is_disconnected:
        assert (await exchange.run()).status == 499
        assert [line["status"] for line in log_lines] == [499]
    else:
        with pytest.raises(asyncio.CancelledError):
            await exchange.run()
        # The process ends, and uvicorn would respond with "Internal Server Error".
        assert exchange.sent[0]["status"] == 503
        assert b"the service is stopping: try again" in exchange.sent[1]["body"]
        assert [line["status"] for line in log_lines] == [503]


async def test_a_request_with_a_response_can_no_longer_be_cancelled() -> None:
    tasks = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        context: HttpContext = scope["state"][STATE_KEY]
        context.cancel_on_disconnect()
        tasks.append(context.task)
        await respond_ok(scope, receive, send)
        tasks.append(context.task)

    await Exchange(app).run()
    assert tasks == [asyncio.current_task(), None]


@pytest.mark.parametrize(
    ("headers", "is_read", "is_draining", "closes"),
    [
        ([], False, False, False),
        ([(b"content-length", b"0")], False, False, False),
        ([(b"content-length", b"2")], True, False, False),
        ([(b"content-length", b"2")], False, False, True),
        ([(b"transfer-encoding", b"chunked")], False, False, True),
        ([(b"transfer-encoding", b"chunked")], True, False, False),
        ([], False, True, True),
    ],
)
async def test_a_connection_is_closed_while_draining_and_over_an_unread_body(
    headers: list[tuple[bytes, bytes]], is_read: bool, is_draining: bool, closes: bool
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if is_read:
            assert await scope["state"][STATE_KEY].body(2) == b"{}"
        await respond_ok(scope, receive, send)

    body = [{"type": "http.request", "body": b"{}", "more_body": False}]
    exchange = await Exchange(app, headers, body, "POST", is_draining).run()
    assert (exchange.header(b"connection") == b"close") is closes


async def test_what_is_not_http_passes_through_unchanged() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(dict(scope))

    async def unused() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError

    await RequestBoundary(app)({"type": "lifespan"}, unused, send)
    assert seen == [{"type": "lifespan"}]


async def test_the_log_line_names_the_operation_the_principal_and_the_decisions(
    log_lines: list[dict[str, Any]],
) -> None:
    async def handler(context: HttpContext) -> PlainTextResponse:
        context.log_fields.update(mode="auto")
        return PlainTextResponse("ok")

    deletion = endpoint_of(DELETE_DOCUMENT, handler)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (await deletion(Request(scope, receive)))(scope, receive, send)

    await Exchange(app, [(b"host", b"localhost")], method="DELETE").run()
    (line,) = log_lines
    assert line["path"] == "/v1/documents/{id}"
    assert (line["key"], line["tenant"], line["environment"]) == ("anonymous", "default", "default")
    assert (line["mode"], line["status"]) == ("auto", 200)
    assert line["ms"] >= 0


async def test_a_path_without_a_role_has_no_principal_in_its_log_line(
    log_lines: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(context: HttpContext) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint_of(LIVENESS, handler)(Request(scope, receive))
        await response(scope, receive, send)

    with caplog.at_level(logging.DEBUG, "trivium.access"):
        await Exchange(app, [(b"host", b"evil.example")]).run()
    assert [(line["key"], line["tenant"], line["status"]) for line in log_lines] == [("unauthenticated", "", 200)]


async def test_probes_and_scrapes_that_succeed_are_logged_at_debug(
    client: httpx.AsyncClient, log_lines: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        assert (await client.get(path)).status_code == 200
    assert log_lines == []
    assert (await client.post("/livez")).status_code == 405
    assert [line["status"] for line in log_lines] == [405]
    with caplog.at_level(logging.DEBUG, "trivium.access"):
        await client.get("/livez")
    assert log_lines[-1]["path"] == "/livez"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (lambda: Unavailable("the graph server cannot be reached", "connection refused"), "connection refused"),
        (lambda: Overloaded(over_quota=False), "more requests are waiting"),
        (lambda: AllSourcesFailed((Failed("graph", "no answer within 120 ms", 120.0),)), "graph: no answer"),
    ],
)
async def test_the_log_line_of_a_503_says_why(
    error: Callable[[], Exception], reason: str, log_lines: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "trivium.access"):  # where nothing else is logged, too
        assert (await Exchange(_raising(error())).run()).status == 503
    assert reason in log_lines[0]["reason"]


async def test_the_log_line_of_a_bad_request_has_no_text_of_it(log_lines: list[dict[str, Any]]) -> None:
    await Exchange(_raising(BadRequest("query: 'secret words'"))).run()
    assert "secret" not in str(log_lines)


async def test_every_operation_has_its_path_in_the_log(
    client: httpx.AsyncClient, log_lines: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "trivium.access"):
        for operation in OPERATIONS:
            await client.request(operation.method, operation.path.replace("{id}", "x").replace("{name}", "x"))
    assert [line["path"] for line in log_lines] == [operation.path for operation in OPERATIONS]


async def test_an_error_of_the_edge_keeps_its_status() -> None:
    assert (await Exchange(_raising(HttpError(408, "too slow"))).run()).status == 408


async def test_a_client_that_disconnects_during_an_upload_leaves_no_trace(
    app: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(messages)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/documents", "headers": [], "query_string": b"", "app": app}
    await app(scope, receive, send)
    assert sent[0]["status"] == 499
    assert "Traceback" not in caplog.text


async def test_too_large_a_body_is_refused_before_it_is_read(client: httpx.AsyncClient) -> None:
    problem(await client.post("/v1/search", content=b"x" * 1_048_577), 413)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    error = problem(await client.post("/v1/search", content=endless()), 413)
    assert error["detail"] == "the body has more than the 1048576 bytes allowed"


async def test_a_bulk_request_without_documents_is_an_error(client: httpx.AsyncClient) -> None:
    problem(await client.post("/v1/documents", content=b"\n \n"), 422)


async def test_paths_and_methods_that_do_not_exist(client: httpx.AsyncClient) -> None:
    unknown = await client.get("/v2/search", headers={"X-Request-ID": "mine"})
    assert problem(unknown, 404)["request_id"] == unknown.headers["x-request-id"] == "mine"
    mistyped = problem(await client.post("/v1/serach", json={"query": "x"}), 404)
    assert mistyped["detail"] == "POST /v1/serach; the nearest path is /v1/search"
    problem(await client.get("/v1/documents/%0A"), 404)
    assert (await client.delete("/v1/collections/a%0Ab%0A")).status_code == 200  # a line feed is a character of a path
    refused = await client.put("/v1/documents/a")
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "DELETE"}
    refused = await client.get("/v1/search")
    problem(refused, 405)
    assert refused.headers["allow"] == "POST"
    assert problem(await client.post("/openapi.json"), 405)
    assert (await client.head("/livez")).status_code == 200


@pytest.mark.parametrize("path", sorted({each.path for each in OPERATIONS if each.method == "GET"}))
async def test_every_path_that_has_get_also_has_head(client: httpx.AsyncClient, path: str) -> None:
    await client.post("/v1/documents", content=ndjson({"id": "a", "text": "b"}))
    address = path.replace("{id}", "main.js" if path.startswith("/console") else "a")
    head, get = await client.head(address), await client.get(address)
    assert (head.status_code, get.status_code) == (200, 200)
    assert (head.content, head.headers["content-type"]) == (b"", get.headers["content-type"])


@pytest.mark.parametrize(("given_id", "is_used"), [("my-id_1", True), ("with space", False), ("x" * 129, False)])
async def test_request_ids_of_searches(client: httpx.AsyncClient, given_id: str, is_used: bool) -> None:
    response = await client.post("/v1/search", json={"query": "x"}, headers={"X-Request-ID": given_id})
    assert (response.headers["x-request-id"] == given_id) is is_used
    assert response.headers["x-request-id"]


async def test_a_search_has_one_log_line_with_its_decisions_and_without_its_text(
    client: httpx.AsyncClient, log_lines: list[dict[str, Any]]
) -> None:
    await search(client, query="a very private question")
    (line,) = log_lines
    assert (line["method"], line["path"], line["status"], line["mode"]) == ("POST", "/v1/search", 200, "auto")
    assert set(line["timings_ms"]) >= {"plan", "gather", "fuse", "hydrate"}
    assert "private" not in json.dumps(line)


async def test_the_log_says_why_a_request_was_refused_without_its_values(
    client: httpx.AsyncClient, log_lines: list[dict[str, Any]]
) -> None:
    await search(client, query="x", limit=0)
    await client.post("/v1/search", content=b'{"query": "x", "a private name": 1}')
    await client.post("/v1/search", json={"query": "x"}, headers={"Host": "elsewhere"})
    assert [line["reason"] for line in log_lines[:2]] == ["invalid limit", "invalid request"]
    assert "the host has to be localhost" in log_lines[2]["reason"]


@pytest.fixture
def no_collections() -> Iterator[None]:
    """What is freed is freed by the number of its references."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def test_requests_are_freed_without_the_garbage_collector(
    client: httpx.AsyncClient, no_collections: None
) -> None:
    """The collection of thousands of requests stopped all others for 100 ms and longer."""
    before = contexts()  # of earlier tests, whose log records have traces
    bodies = [b'{"query": "a query"}', b'{"query": "a query"}', b'{"query": 5}', b"{"]
    statuses = [(await client.post("/v1/search", content=body)).status_code for body in bodies]
    assert statuses == [200, 200, 422, 422]
    together = await asyncio.gather(*(search(client, query=f"query {n}", timeout_ms=10) for n in range(50)))
    assert 503 in {response.status_code for response in together}
    await client.post("/v1/documents", content=ndjson({"id": "a", "text": "b"}))
    assert (await client.get("/v1/documents/a")).status_code == 200
    assert (await client.get("/v2/search")).status_code == 404
    assert contexts() == before


def contexts() -> set[int]:
    """The requests that are in memory."""
    return {id(each) for each in gc.get_objects() if isinstance(each, HttpContext)}
