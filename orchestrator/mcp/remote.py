"""The tools of a running service for a client that speaks over standard input and output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from adapters import Unavailable
from orchestrator.client.calls import caller_headers
from orchestrator.mcp.server import server_with

_NO_TOOLS = (401, 403, 404, 405)
"""The service answers an empty message with 400 if it has tools for the caller."""
_TIMEOUT_S = 60.0
"""Of a call, with the time that the service waits for its backends."""


@asynccontextmanager
async def forwarding_server(
    url: str, key: str | None, user: str | None = None, teams: Sequence[str] | None = None
) -> AsyncIterator[Server[Any]]:
    """A server that passes each request to the service at ``url``, with the key, and its answer back.

    :param user: on whose behalf it acts, and ``teams``: of the user.
    :raises ValueError: as :func:`orchestrator.client.calls.caller_headers`.
    :raises Unavailable: if the service cannot be reached, or has no tools for this key.
    """
    headers = caller_headers(key, user, teams)
    address = f"{url.rstrip('/')}/mcp"
    async with httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT_S) as http:
        try:
            refusal = await http.post(address, content=b"", headers={"content-type": "application/json"})
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unavailable(f"{url} cannot be reached: {error}") from error
        if refusal.status_code in _NO_TOOLS:
            raise Unavailable(f"{url} has no tools for this caller: status {refusal.status_code}, {refusal.text[:200]}")
        async with Client(streamable_http_client(address, http_client=http)) as client:
            yield _forwarding(client)


def _forwarding(client: Client) -> Server[Any]:
    async def list_tools(
        _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await client.list_tools(cursor=params.cursor if params else None)

    async def call_tool(_: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        return await client.call_tool(params.name, params.arguments)

    return server_with(list_tools, call_tool)
