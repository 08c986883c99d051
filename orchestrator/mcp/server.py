"""The tools over the Model Context Protocol: with the low-level server of the package ``mcp``.

Its high-level server ignores unknown arguments in silence, and its errors are those of pydantic
(docs/decisions/0039-mcp.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from adapters.model.spelling import allowed_names
from orchestrator.mcp.arguments import input_schema
from orchestrator.mcp.caller import Caller
from orchestrator.mcp.tools import INSTRUCTIONS, TOOLS, Tool, ToolError, call, tool_named, tools_for

CallerOf: TypeAlias = Callable[[ServerRequestContext[Any]], Caller]
"""The caller of a request."""
ListTools: TypeAlias = Callable[
    [ServerRequestContext[Any], types.PaginatedRequestParams | None], Awaitable[types.ListToolsResult]
]
CallTool: TypeAlias = Callable[
    [ServerRequestContext[Any], types.CallToolRequestParams], Awaitable[types.CallToolResult]
]

_SCHEMAS = {tool.name: input_schema(tool.kind) for tool in TOOLS}


def tool_server(caller_of: CallerOf) -> Server[Any]:
    """A server of the tools that each caller may call."""

    async def list_tools(
        context: ServerRequestContext[Any], _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools_for(caller_of(context).principal)])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller = caller_of(context)
        tool = tool_named(params.name)
        if tool is None:
            names = [each.name for each in tools_for(caller.principal)]
            message = f"unknown tool {params.name[:80]!r}, {allowed_names(params.name, names)}"
            raise MCPError(types.INVALID_PARAMS, message)
        try:
            answer = await call(tool, params.arguments or {}, caller)
        except ToolError as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=None if answer.structured is None else dict(answer.structured),
        )

    return server_with(list_tools, call_tool, _SCHEMAS.get)


def server_with(
    list_tools: ListTools, call_tool: CallTool, schema_of: Callable[[str], Mapping[str, Any] | None] | None = None
) -> Server[Any]:
    """A server that says that it is Trivium.

    :param schema_of: the schema of a tool's arguments by name, if it is known here.
    """
    return Server(
        "trivium",
        version=version("trivium"),
        title="Trivium",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=schema_of,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def http_transport(server: Server[Any], max_body_bytes: int) -> StreamableHTTPSessionManager:
    """Streamable HTTP without sessions: each request is answered by itself, as JSON, by any process.

    Hosts and origins are checked by the edge.
    """
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=max_body_bytes
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_SCHEMAS[tool.name],
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )
