"""``trivium mcp``."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio
import typer

from adapters.ports.optional_packages import extra
from orchestrator.bootstrap.live_service import LiveService
from orchestrator.cli.scope_options import Environment, Tenant, require_one_caller, searcher
from orchestrator.cli.terminal import reported_errors
from orchestrator.mcp.caller import Caller
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load
from orchestrator.telemetry.logging import configure_logging


def mcp(
    *,
    tenant: Tenant = None,
    environment: Environment = None,
    key: Annotated[str | None, typer.Option(help="the caller of the tools is that of this API key")] = None,
    url: Annotated[str | None, typer.Option(help="use a running service, such as http://127.0.0.1:8080")] = None,
) -> None:
    """Serve tools for an agent over standard input and output (MCP).

    An agent's program starts this command. A running service has the same tools at /mcp.
    """
    with reported_errors():
        with extra("mcp"):
            from orchestrator.mcp import remote, server  # noqa: PLC0415  # of the extra

        require_one_caller(tenant, environment, key, url)
        # The thread that waits for standard input cannot be interrupted otherwise; what was written is durable.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        settings = load()
        configure_logging(settings.server.log_level)

        async def own(settings: Settings) -> None:
            callers: list[Caller] = []

            def use(service: Service) -> Callable[[], Awaitable[None]]:
                callers[:] = [Caller(service, searcher(service, tenant, environment, key), "mcp")]
                return anyio.sleep_forever  # nothing says when the last call of a tool has ended

            failure: Exception | None = None
            async with anyio.create_task_group() as group:
                try:
                    await LiveService(settings, group, use).start()
                except Exception as error:
                    failure = error  # raised outside of the group, which would put it into another exception
                else:
                    await server.serve_stdio(server.tool_server(lambda _: callers[0]))
                group.cancel_scope.cancel()
            if failure:
                raise failure

        async def of_service(url: str) -> None:
            async with remote.forwarding_server(url, key, settings.access.user, settings.access.teams) as forwarding:
                await server.serve_stdio(forwarding)

        if url is not None:
            anyio.run(of_service, url)
        else:
            anyio.run(own, settings)
