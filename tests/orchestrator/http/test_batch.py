"""``POST /v1/search/batch``: one line for each line, in order, as each search alone would be answered."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from orchestrator.service.batch import _LINES
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import KeyedClient, index_documents, ndjson, search, serving_here, until

pytestmark = pytest.mark.anyio

_CLIENT_TIMEOUT_S = 1.0
HEAD = b"POST /v1/search/batch HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


async def batch(client: httpx.AsyncClient, *lines: object, **options: Any) -> list[dict[str, Any]]:
    response = await client.post("/v1/search/batch", content=ndjson(*lines), **options)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def without_times(response: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in response.items()
        if name not in ("took_ms", "timings_ms", "request_id", "query_id", "cache")
    }


async def test_each_line_is_answered_as_alone_in_order(client: httpx.AsyncClient, app: FastAPI) -> None:
    await index_documents(app)
    requests = [
        {"query": query, "limit": limit, "mode": mode, "timeout_ms": 10_000}
        for query in ("Christopher Nolan", "pasta", "film")
        for limit in (1, 5)
        for mode in ("auto", "vector", "keyword")
    ]
    lines = await batch(client, *requests)
    assert [line["line"] for line in lines] == list(range(1, len(requests) + 1))
    for line, request in zip(lines, requests, strict=True):
        alone = (await search(client, **request)).json()
        assert (line["status"], without_times(line["response"])) == (200, without_times(alone))


async def test_a_line_that_is_wrong_is_a_problem_of_its_own(client: httpx.AsyncClient) -> None:
    body = (
        b'\n{"query": ""}\nnonsense\n  \n{"query": "x", "limit": 51}\n{"query": "x"}\n{"query": "x", "colour": 1}\n'
        + (b'{"query": "' + b"x" * 1_048_576 + b'"}\n' + b'{"query": "x"}')
    )
    response = await client.post("/v1/search/batch", content=body, headers={"X-Request-ID": "mine"})
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [(line["line"], line["status"]) for line in lines] == [
        (2, 422), (3, 422), (5, 422), (6, 200), (7, 422), (8, 422), (9, 200),
    ]  # fmt: skip
    problems = {line["line"]: line["problem"] for line in lines if "problem" in line}
    assert problems[2]["detail"] == "query: '', allowed are texts of 1 to 4096 characters"
    assert problems[3]["detail"] == "the line is not JSON from byte 5 on"
    assert problems[5]["detail"] == "limit: 51, allowed are 1 to 50"
    assert problems[7]["detail"].startswith("unknown field 'colour', allowed are query")
    assert problems[8]["detail"] == "the line has more than the 1048576 bytes allowed"
    assert problems[5]["request_id"] == "mine-5"


async def test_no_lines_have_no_lines(client: httpx.AsyncClient) -> None:
    assert await batch(client) == []


async def test_a_batch_is_one_line_of_the_log_and_its_searches_count(
    client: httpx.AsyncClient, log_lines: list[dict[str, Any]]
) -> None:
    await batch(client, {"query": "a private question"}, {"query": ""}, {"query": "x"})
    (line,) = log_lines
    assert (line["path"], line["lines"], line["statuses"]) == ("/v1/search/batch", 3, {"200": 2, "422": 1})
    assert "private" not in str(line)
    metrics = (await client.get("/metrics")).text
    assert 'trivium_searches_total{cache="miss"} 2.0' in metrics


async def test_each_key_reaches_its_own_scope(keyed: KeyedClient) -> None:
    for name in ("root", "other"):
        await keyed.request(name, "POST", "/v1/documents", content=ndjson({"id": f"of-{name}", "text": "alpha"}))
    found = {}
    for name in ("root", "other", "reader"):
        response = await keyed.request(name, "POST", "/v1/search/batch", content=ndjson({"query": "alpha"}))
        found[name] = [hit["id"] for hit in json.loads(response.text)["response"]["hits"]]
    assert found == {"root": ["of-root"], "other": ["of-other"], "reader": ["of-root"]}
    assert (await keyed.request(None, "POST", "/v1/search/batch", content=b"")).status_code == 401


class Served:
    """A server on a port, in this process."""

    def __init__(self, server: uvicorn.Server, app: Any) -> None:
        self.server, self.app = server, app
        self.answered = 0
        self.at_once: list[int] = []
        running = 0
        search = app.state.service.search
        respond = search.respond

        async def counted(*arguments: Any) -> object:
            nonlocal running
            running += 1
            self.at_once.append(running)
            try:
                return await respond(*arguments)
            finally:
                running -= 1
                self.answered += 1

        search.respond = counted

    async def connect(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.config.port, **options)
        writer.write(HEAD)
        return reader, writer

    @property
    def running(self) -> int:
        return len(self.server.server_state.tasks)


@pytest.fixture
async def served(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Served]:
    settings = chosen.changed(client_timeout_ms=int(_CLIENT_TIMEOUT_S * 1_000))
    async with serving_here(settings, monkeypatch) as (server, app), asyncio.timeout(60):
        yield Served(server, app)
        await until(lambda: len(server.server_state.tasks) == 0)
    assert "Exception in ASGI" not in caplog.text


def chunk(*lines: object) -> bytes:
    content = ndjson(*lines) + b"\n"
    return b"%x\r\n%b\r\n" % (len(content), content)


async def read_line(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next line of a chunked body, whose chunks are lines."""
    while not (line := await reader.readline()).startswith(b"{"):
        assert line, "the connection has ended"
    decoded: dict[str, Any] = json.loads(line)
    return decoded


async def test_a_line_is_answered_before_the_next_one_is_sent(served: Served) -> None:
    """For longer than a request may take to be sent."""
    reader, writer = await served.connect()
    for number in range(1, 8):
        writer.write(chunk({"query": f"query {number}"}))
        assert (await read_line(reader))["line"] == number
        await asyncio.sleep(_CLIENT_TIMEOUT_S / 4)  # what is tested
    writer.write(b"0\r\n\r\n")
    assert await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def test_a_client_that_stops_reading_stops_the_work(served: Served) -> None:
    count = 1_000
    reader, writer = await served.connect(limit=16_384)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    sent = asyncio.ensure_future(_send_all(writer, count))
    previous = -1
    while served.answered != previous:  # until nothing goes on
        previous = served.answered
        await asyncio.sleep(0.3)
    assert served.answered < count
    assert not sent.done()
    lines = [await read_line(reader) for _ in range(count)]
    assert [(line["line"], line["status"]) for line in lines] == [(number, 200) for number in range(1, count + 1)]
    await sent
    assert served.answered == count
    writer.close()


async def _send_all(writer: asyncio.StreamWriter, count: int) -> None:
    for number in range(count):
        line = json.dumps({"query": f"x{number}", "cache": "bypass", "explain": True}).ljust(2_000).encode() + b"\n"
        writer.write(b"%x\r\n%b\r\n" % (len(line), line))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def test_a_client_that_leaves_ends_the_work(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(chunk(*({"query": f"x{number}", "cache": "bypass"} for number in range(2_000))))
    await read_line(reader)
    writer.transport.abort()
    await until(lambda: served.running == 0)
    assert served.answered < 1_000


async def test_a_client_that_stops_sending_is_closed(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(chunk({"query": "x"}))
    await read_line(reader)
    await reader.read()  # ends, because nothing was sent for longer than the time limit
    await until(lambda: served.running == 0)
    writer.close()


async def test_few_lines_are_processed_at_once_and_one_beside_other_searches(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(chunk(*({"query": f"x{number}", "cache": "bypass"} for number in range(50))))
    for _ in range(50):
        await read_line(reader)
    assert max(served.at_once) == _LINES
    admission = served.app.state.service.search.admission
    admission.interactive_at = float("inf")  # other searches come all the time
    served.at_once.clear()
    writer.write(chunk(*({"query": f"y{number}", "cache": "bypass"} for number in range(50))) + b"0\r\n\r\n")
    for _ in range(50):
        await read_line(reader)
    assert max(served.at_once) == 1
    writer.close()
