"""Documents, requests and checks that several tests of the API use."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters import Scope as DocumentScope
from adapters.model.protection import HIGHEST_CLEARANCE
from orchestrator.auth.key_admin import add_key
from orchestrator.auth.principal import anonymous_operator
from orchestrator.http.app import create_app
from orchestrator.http.byte_budget import ByteBudgets
from orchestrator.http.endpoint import RequestBoundary
from orchestrator.http.metrics import Uses
from orchestrator.http.server import PROTOCOL
from orchestrator.http.unkeyed_rate import UnkeyedRate
from orchestrator.indexing.ndjson import ParsedLine, parse_ndjson
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.conftest import SCOPE
from tests.secrets import register_secret
from tests.servers.start import free_port

SERVICE = SimpleNamespace(keyring=None, anonymous=anonymous_operator(SCOPE, "normal"))

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "nolan", "title": "Christopher Nolan", "text": "A film director born in London.", "tags": ["person"]},
    {"id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan.", "metadata": {"year": 2006}},
    {"id": "pasta", "title": "Pasta", "text": "Boil water, add salt.", "url": "https://example.org/pasta"},
    {"id": "note", "text": "remember the pasta", "collection": "memory"},
    {"id": "secret", "text": "Christopher Nolan's secret", "sensitivity": "restricted"},
]

for _document in DOCUMENTS:
    register_secret(_document["text"])


def ndjson(*documents: object) -> bytes:
    return b"\n".join(json.dumps(document).encode() for document in documents)


async def index_documents(app: Starlette, documents: Sequence[object] = DOCUMENTS) -> None:
    """Write documents of every sensitivity, in one write."""
    documents_service, anonymous = app.state.service.documents, app.state.service.anonymous
    lines = list(parse_ndjson(io.BytesIO(ndjson(*documents))))

    async def read_lines() -> list[ParsedLine]:
        return lines

    report = await documents_service.put(read_lines, replace(anonymous, clearance=HIGHEST_CLEARANCE))
    assert report.indexed == len(documents)


async def search(client: httpx.AsyncClient, **body: object) -> httpx.Response:
    return await client.post("/v1/search", json={"timeout_ms": 10_000, **body})


async def complete_response(client: httpx.AsyncClient, **body: object) -> dict[str, Any]:
    """The response to a search in which nothing failed."""
    response = await search(client, **body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert found["degraded"] == []
    return found


@contextmanager
def log_of(
    name: str, decode: Callable[[str], dict[str, Any]] = lambda message: {"message": message}
) -> Iterator[list[dict[str, Any]]]:
    """The lines of a logger: their fields, and what their messages contain. Starting a service removes the handlers
    that pytest has."""
    lines: list[dict[str, Any]] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(vars(record) | decode(record.getMessage()))

    handler, logger = Collect(), logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def hit_ids(response: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in response["hits"]]


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """The body of an error, after a check of everything that all errors have in common."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["title"]
    return body


def response_statuses(received: bytes) -> list[int]:
    """The status of each response on a connection, in order."""
    return [int(each[:3]) for each in received.split(b"HTTP/1.1 ")[1:]]


async def respond_ok(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("ok")(scope, receive, send)


@dataclass
class Exchange:
    """One request to an application inside the boundary, and everything that was sent back."""

    app: ASGIApp
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    incoming: list[Message] = field(default_factory=list)
    method: str = "GET"
    is_draining: bool = False
    byte_budgets: ByteBudgets = field(default_factory=ByteBudgets)
    unkeyed_rate: UnkeyedRate = field(default_factory=UnkeyedRate)
    sent: list[Message] = field(default_factory=list)

    async def run(self) -> Exchange:
        remaining = iter(self.incoming)

        async def receive() -> Message:
            return next(remaining)

        async def send(message: Message) -> None:
            self.sent.append(message)

        metrics = SimpleNamespace(in_flight=0, uses=Uses(), record=lambda *_: None, record_failed_search=lambda _: None)
        state = SimpleNamespace(
            service=SERVICE, draining=self.is_draining, metrics=metrics, tracing=None, byte_budgets=self.byte_budgets,
            unkeyed_rate=self.unkeyed_rate,
        )  # fmt: skip
        application = SimpleNamespace(state=state)
        scope: Scope = {
            "type": "http", "method": self.method, "path": "/some/path", "query_string": b"", "headers": self.headers,
            "app": application,
        }  # fmt: skip
        await RequestBoundary(self.app)(scope, receive, send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    def header(self, name: bytes) -> bytes | None:
        return dict(self.sent[0]["headers"]).get(name)


class KeyedClient:
    """A client of a service with keys: each request is sent with the key of a name, or with none."""

    def __init__(self, path: Path, client: httpx.AsyncClient, app: Starlette) -> None:
        self.path, self._client, self.app = path, client, app
        self.service: Service = app.state.service
        self._keys = {
            "root": add_key(path, "root", DocumentScope("acme", "live"), "restricted", admin=True),
            "monitoring": add_key(path, "monitoring", DocumentScope("acme", "live"), "public", operator=True),
            "reader": add_key(path, "reader", DocumentScope("acme", "live"), "normal", admin=False),
            "other": add_key(path, "other", DocumentScope("umbrella", "live"), "restricted", admin=True),
        }
        for key in self._keys.values():
            register_secret(key)
            register_secret(key.split("_", 2)[2])

    def add(self, name: str, key: str) -> None:
        """Send requests with another key, too. The service accepts it from now on."""
        register_secret(key)
        self._keys[name] = key
        assert self.service.keyring is not None
        self.service.keyring.refresh()

    def headers(self, name: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._keys[name]}"} if name else {}

    async def request(self, name: str | None, method: str, path: str, **options: Any) -> httpx.Response:
        headers = self.headers(name)
        return await self._client.request(method, path, headers=headers | options.pop("headers", {}), **options)

    async def found(self, name: str) -> set[str]:
        response = await self.request(name, "POST", "/v1/search", json={"query": "alpha", "timeout_ms": 10_000})
        return {hit["id"] for hit in response.json()["hits"]}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a state of uvicorn, which has no events."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(
    settings: Settings, documents: Sequence[object] = DOCUMENTS
) -> AsyncIterator[tuple[Starlette, httpx.AsyncClient]]:
    """The service with some documents, without a port, and a client of it."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await until_ready(client)
            if documents:
                await index_documents(app, documents)
            yield app, client


async def until_ready(client: httpx.AsyncClient) -> None:
    """Wait until every source is ready: a graph server that has just started makes its plans first."""
    async with asyncio.timeout(60):
        while set((await client.get("/readyz")).json()["sources"].values()) != {"ok"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynccontextmanager
async def serving_here(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[uvicorn.Server, Starlette]]:
    """The service on a port, in this process."""
    app = create_app(settings)
    config = uvicorn.Config(app, port=free_port(), http=PROTOCOL, proxy_headers=False, ws="none", log_config=None)
    server = uvicorn.Server(config)
    monkeypatch.setattr(server, "capture_signals", nullcontext)
    serving = asyncio.ensure_future(server.serve())
    await until(lambda: server.started)
    try:
        yield server, app
    finally:
        server.should_exit = True
        await serving
