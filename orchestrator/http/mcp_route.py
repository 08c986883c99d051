"""``POST /mcp``: the tools of ``orchestrator/mcp/`` over Streamable HTTP, if the extra ``mcp`` is installed.

A request has the key, the limits, the log line and the metrics of every other request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from orchestrator.auth.principal import Forbidden
from orchestrator.http.errors import HttpError
from orchestrator.http.request_context import STATE_KEY, HttpContext
from orchestrator.http.search_route import log_search
from orchestrator.mcp.caller import Caller

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_MAX_BYTES = 4_194_304
"""Of a request: a document of a megabyte, whose characters may be escaped."""


@asynccontextmanager
async def mcp_transport() -> AsyncIterator[StreamableHTTPSessionManager | None]:
    """The transport, as long as the application runs; ``None`` without the extra."""
    if find_spec("mcp") is None:
        yield None
        return
    from orchestrator.mcp.server import http_transport, tool_server  # noqa: PLC0415  # of the extra; takes long

    transport = http_transport(tool_server(_caller), _MAX_BYTES)
    async with transport.run():
        yield transport


async def mcp(context: HttpContext) -> Response:
    """Answer one message of a client."""
    transport: StreamableHTTPSessionManager | None = context.request.app.state.mcp
    if transport is None:
        raise HttpError(404, "this service has no tools for agents: pip install 'trivium[mcp]'")
    _require_own_host(context)
    body = await context.body(_MAX_BYTES)
    context.cancel_on_disconnect()
    return _Answered(transport, body)


def _require_own_host(context: HttpContext) -> None:
    """Check the host, and the origin of web pages, which MCP requires (Streamable HTTP, "Security Warning").

    :raises Forbidden: if they are not those of this service.
    """
    hosts = context.service.settings.access.mcp_hosts
    host, origin = (context.headers.get(name, b"").decode("latin-1") for name in (b"host", b"origin"))
    allowed = {_without_default_port(each) for each in hosts or (host,)}
    if _without_default_port(host) not in allowed:
        raise Forbidden(f"the host is {host[:80]!r}, allowed are {', '.join(hosts)} (TRIVIUM_MCP_HOSTS)")
    if origin and _without_default_port(origin.partition("://")[2]) not in allowed:
        raise Forbidden(f"pages of the origin {origin[:80]!r} are refused (TRIVIUM_MCP_HOSTS)")


def _without_default_port(host: str) -> str:
    """A host as it is compared (RFC 9110, section 4.2.3)."""
    return host.lower().removesuffix(":443").removesuffix(":80")


def _caller(context: ServerRequestContext[Any]) -> Caller:
    """The caller of a tool: that of the HTTP request."""
    http: HttpContext = context.request.scope["state"][STATE_KEY]  # type: ignore[union-attr]  # set for HTTP

    def begin(tool: str) -> None:
        http.log_fields["tool"] = tool

    return Caller(http.service, http.principal, http.request_id, begin, partial(log_search, http))


class _Answered(Response):
    """The response that the transport gives to a body."""

    def __init__(self, transport: StreamableHTTPSessionManager, content: bytes) -> None:
        super().__init__()
        self._transport = transport
        self._content: bytes | None = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def receive_body() -> Message:
            if self._content is None:
                return await receive()
            content, self._content = self._content, None
            return {"type": "http.request", "body": content, "more_body": False}

        await self._transport.handle_request(scope, receive_body, send)
