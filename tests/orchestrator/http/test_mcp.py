"""``POST /mcp`` with the official client, in both of its protocols: without sessions, and with the older handshake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import httpx
import httpx2
import pytest
from fastapi import FastAPI
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from orchestrator.http import mcp_route
from orchestrator.http.app import create_app
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import DOCUMENTS, KeyedClient, index_documents, problem

pytestmark = pytest.mark.anyio

Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]

READING = ["hybrid_search", "memory_search", "get_document", "list_collections", "explain_search"]
WRITING = ["store_document", "delete_document"]


@pytest.fixture(params=["auto", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@asynccontextmanager
async def connected(app: FastAPI, protocol: str, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    """The official client of an application."""
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, headers=headers, timeout=30) as http:
        address = "http://localhost/mcp"
        async with Client(streamable_http_client(address, http_client=http), mode=protocol) as client:
            yield client


@pytest.fixture
async def agent(app: FastAPI, protocol: str) -> AsyncIterator[Client]:
    await index_documents(app)
    async with connected(app, protocol) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def called(agent: Client, tool: str, **arguments: Any) -> str:
    """The text of an answer that is no error."""
    result = await agent.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def test_every_tool_is_listed_and_called(agent: Client) -> None:
    tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
    assert list(tools) == READING + WRITING
    for name, tool in tools.items():
        hints = tool.annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint) == (name in READING, name in WRITING)
        assert tool.input_schema["additionalProperties"] is False
    assert "The Prestige" in await called(agent, "hybrid_search", query="film by Christopher Nolan")
    assert "remember the pasta" in await called(agent, "memory_search", query="pasta")
    assert "Boil water, add salt." in await called(agent, "get_document", id="pasta")
    assert "documents: 3 documents" in await called(agent, "list_collections")
    assert "why: " in await called(agent, "explain_search", query="film by Christopher Nolan")
    assert "Stored 'new'" in await called(agent, "store_document", id="new", text="A new document about sailing.")
    assert "id: new" in await called(agent, "hybrid_search", query="sailing")
    assert "Deleted 'new'" in await called(agent, "delete_document", id="new")
    assert "id: new" not in await called(agent, "hybrid_search", query="sailing")


async def test_the_server_says_who_it_is(agent: Client) -> None:
    assert agent.server_info.name == "trivium"
    assert agent.instructions is not None
    assert len(agent.instructions.splitlines()) <= 6


async def test_an_unknown_tool_is_an_error_with_the_nearest(agent: Client) -> None:
    with pytest.raises(MCPError, match=r"unknown tool 'hybrid_serch', .*the nearest is hybrid_search"):
        await agent.call_tool("hybrid_serch", {"query": "x"})


async def test_the_answer_has_no_document_above_the_clearance(agent: Client) -> None:
    for tool in ("hybrid_search", "explain_search"):
        assert "secret" not in await called(agent, tool, query="Christopher Nolan", limit=50)
    assert "no document 'secret'" in text_of(await agent.call_tool("get_document", {"id": "secret"}))


async def test_a_call_has_the_log_line_and_the_metrics_of_a_search(
    agent: Client, app: FastAPI, log_lines: list[dict[str, Any]], client: httpx.AsyncClient
) -> None:
    log_lines.clear()
    await called(agent, "hybrid_search", query="a private question about Nolan")
    line = next(each for each in log_lines if each.get("tool"))
    assert (line["path"], line["status"], line["tool"], line["mode"]) == ("/mcp", 200, "hybrid_search", "auto")
    assert "private" not in str(log_lines)
    metrics = (await client.get("/metrics")).text
    assert 'path="/mcp"' in metrics


@pytest.mark.parametrize(("name", "tools"), [("reader", READING), ("root", READING + WRITING)])
async def test_a_key_sees_and_calls_the_tools_of_its_role(
    keyed: KeyedClient, protocol: str, name: str, tools: list[str]
) -> None:
    async with connected(keyed.app, protocol, keyed.headers(name)) as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools] == tools
        stored = await agent.call_tool("store_document", {"id": "x", "text": "written"})
        assert stored.is_error is (name == "reader")
        if name == "reader":
            assert "has the role 'reader', this needs 'admin'" in text_of(stored)
    found = await keyed.request("root", "GET", "/v1/documents/x")
    assert found.status_code == (404 if name == "reader" else 200)


async def test_each_key_reaches_its_own_scope(keyed: KeyedClient, protocol: str) -> None:
    for name in ("root", "other"):
        async with connected(keyed.app, protocol, keyed.headers(name)) as agent:
            await called(agent, "store_document", id=f"of-{name}", text="alpha")
    for name, hidden in (("root", "of-other"), ("other", "of-root"), ("reader", "of-other")):
        async with connected(keyed.app, protocol, keyed.headers(name)) as agent:
            answer = await called(agent, "hybrid_search", query="alpha") + await called(agent, "list_collections")
            assert hidden not in answer
            assert (await agent.call_tool("get_document", {"id": hidden})).is_error


async def test_without_a_valid_key_there_is_no_answer(keyed: KeyedClient) -> None:
    for headers in ({}, {"Authorization": "Bearer trivium_0000000000000000_x"}):
        refused = await keyed.request(None, "POST", "/mcp", json={}, headers=headers)
        assert problem(refused, 401)
        assert refused.headers["www-authenticate"] == "Bearer"  # no authorization server is advertised


async def test_the_path_has_no_redirect_and_no_streams(client: httpx.AsyncClient) -> None:
    assert (await client.post("/mcp/", json={})).status_code == 404
    for method in ("GET", "DELETE"):
        assert (await client.request(method, "/mcp")).headers["allow"] == "POST"


async def test_too_large_a_message_is_refused(client: httpx.AsyncClient) -> None:
    problem(await client.post("/mcp", content=b"x" * 4_194_305), 413)


ORIGINS = [
    ((), "search.example.org", None, 200),
    ((), "search.example.org", "https://search.example.org", 200),
    ((), "search.example.org", "https://evil.example.org", 403),
    (("search.example.org",), "search.example.org", "https://search.example.org", 200),
    (("search.example.org",), "10.0.0.1:8080", None, 403),
    (("a.example.org", "b.example.org:8443"), "a.example.org", "https://b.example.org:8443", 200),
    (("a.example.org",), "a.example.org", "null", 403),
    (("Search.example.org",), "search.EXAMPLE.org:443", "https://search.example.org", 200),
    (("search.example.org:8443",), "search.example.org", None, 403),
]


@pytest.mark.parametrize(("hosts", "host", "origin", "status"), ORIGINS)
async def test_hosts_and_origins_are_those_of_the_setting(
    keyed: KeyedClient, hosts: tuple[str, ...], host: str, origin: str | None, status: int
) -> None:
    object.__setattr__(keyed.app.state.service, "settings", keyed.service.settings.changed(mcp_hosts=hosts))
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Host": host, "Accept": "application/json, text/event-stream", **({"Origin": origin} if origin else {})}
    response = await keyed.request("reader", "POST", "/mcp", json=ping, headers=headers)
    assert response.status_code == status, response.text


async def test_a_service_without_the_extra_says_how_to_get_it(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_route, "find_spec", lambda _: None)
    app = create_app(chosen)
    address = {"transport": httpx.ASGITransport(app), "base_url": "http://localhost"}
    async with app.router.lifespan_context(app), httpx.AsyncClient(**address) as client:
        refused = problem(await client.post("/mcp", json={}), 404)
    assert "pip install 'trivium[mcp]'" in refused["detail"]


async def test_a_document_is_stored_as_it_is_sent(agent: Client, client: httpx.AsyncClient) -> None:
    document = {
        "id": "all",
        "text": "text",
        "title": "title",
        "collection": "memory",
        "tags": ["a"],
        "metadata": {"year": 2020, "kinds": ["x", "y"]},
        "links": [{"target": DOCUMENTS[0]["id"], "type": "about"}],
        "created_at": "2024-05-01T00:00:00Z",
    }
    await called(agent, "store_document", **document)
    stored = (await client.get("/v1/documents/all", params={"collection": "memory"})).json()
    assert {name: stored[name] for name in document if name != "links"} == {
        name: value for name, value in document.items() if name != "links"
    }
    assert stored["links"][0]["target"] == DOCUMENTS[0]["id"]


async def test_the_headers_of_a_user_narrow_every_tool(app: FastAPI, protocol: str) -> None:
    await index_documents(
        app,
        [
            {"id": "of alice", "text": "a film", "visibility": "private", "owner": "alice"},
            {"id": "of legal", "text": "a film", "visibility": "team", "team": "legal"},
        ],
    )
    async with connected(app, protocol, {"X-Trivium-User": "bob", "X-Trivium-Teams": "legal"}) as agent:
        for tool in ("hybrid_search", "explain_search"):
            answer = await called(agent, tool, query="a film")
            assert "of legal" in answer
            assert "visible to its team only" in answer
            assert "of alice" not in answer
        assert "documents: 1 documents" in await called(agent, "list_collections")
        assert (await agent.call_tool("get_document", {"id": "of alice"})).is_error
        assert "visible to its team only" in await called(agent, "get_document", id="of legal")
        assert "There is no document" in await called(agent, "delete_document", id="of alice")
    async with connected(app, protocol, {"X-Trivium-User": "alice"}) as agent:
        answer = await called(agent, "hybrid_search", query="a film")
        assert "visible to its owner only" in answer
        assert "of legal" not in answer
