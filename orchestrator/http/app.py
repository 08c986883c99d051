"""The application: ordinary FastAPI, with one raw route for search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.first_search import warm_up
from orchestrator.http import documents, operations
from orchestrator.http.endpoint import RequestBoundary, raw_endpoint
from orchestrator.http.errors import STATUSES, problem
from orchestrator.http.interpreter import tuned_for_serving
from orchestrator.http.lifecycle import drain_on_sigterm
from orchestrator.http.metrics import ServiceMetrics
from orchestrator.http.openapi import openapi_document
from orchestrator.http.protocol import ConnectionLimits
from orchestrator.http.request_context import STATE_KEY, HttpContext
from orchestrator.http.routes import SEARCH, methods_of
from orchestrator.http.search_route import search
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load
from orchestrator.telemetry.logging import configure_logging
from orchestrator.telemetry.tracing import Tracing, is_enabled

_MAX_DRAIN_S = 1.0
_DRAIN_FRACTION = 0.1
"""Of the shutdown grace period: how long requests are accepted after SIGTERM."""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application for ``settings``, by default those of the environment. Stores open at its start-up."""
    chosen = settings or load()
    configure_logging(chosen.server.log_level)
    drain_s = min(chosen.server.shutdown_grace_ms * _DRAIN_FRACTION / 1_000, _MAX_DRAIN_S)

    def start_draining() -> None:
        app.state.draining = True

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service(chosen) as service:
            await warm_up(service)
            app.state.service = service
            app.state.metrics = ServiceMetrics(service)
            app.state.tracing = Tracing(app.version) if is_enabled() else None
            with tuned_for_serving(), drain_on_sigterm(start_draining, drain_s):
                async with anyio.create_task_group() as group:
                    for task in (*service.background, app.state.metrics.run):
                        group.start_soon(task)
                    yield
                    group.cancel_scope.cancel()
            if app.state.tracing:
                await anyio.to_thread.run_sync(app.state.tracing.close)

    # No generated documentation pages: they load scripts from other hosts.
    app = _App(title="Trivium", version=version("trivium"), lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.draining = False
    app.state.connection_limits = ConnectionLimits(client_timeout_s=chosen.server.client_timeout_ms / 1_000)
    app.include_router(documents.router)
    app.include_router(operations.router)
    app.router.routes.append(Route(SEARCH.path, raw_endpoint(SEARCH, search), methods=[SEARCH.method]))
    app.router.redirect_slashes = False  # no header decides where a request is sent
    app.add_exception_handler(HTTPException, _no_route)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


class _App(FastAPI):
    """FastAPI inside :class:`RequestBoundary`, with a shortcut to the raw route past the other middleware."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._boundary = RequestBoundary(self._route)

    def build_middleware_stack(self) -> ASGIApp:
        """FastAPI's middleware without the outermost, which would send a bare 500 before the boundary acts."""
        stack = super().build_middleware_stack()
        return stack.app if isinstance(stack, ServerErrorMiddleware) else stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        await self._boundary(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = self._raw_route(scope)
        if raw is None:
            await super().__call__(scope, receive, send)
        else:
            await raw(scope, receive, send)

    def _raw_route(self, scope: Scope) -> ASGIApp | None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != (SEARCH.method, SEARCH.path):
            return None
        route = self.router.routes[-1]
        return route.app if isinstance(route, Route) and route.matches(scope)[0] is Match.FULL else None


async def _no_route(request: Request, error: Exception) -> Response:
    """A path or a method that does not exist. All operations of the path count for ``Allow``, not only the first."""
    context: HttpContext = request.scope["state"][STATE_KEY]
    status = error.status_code if isinstance(error, HTTPException) and error.status_code in STATUSES else 500
    response = problem(status, f"{request.method} {request.url.path[:200]}", context.request_id)
    if status == 405 and isinstance(error, HTTPException):
        first = (error.headers or {}).get("Allow", "")
        methods = {*methods_of(request.url.path), *(each.strip() for each in first.split(",") if each.strip())}
        response.headers["Allow"] = ", ".join(sorted(methods))
    return response


def _document(app: FastAPI) -> dict[str, Any]:
    service: Service = app.state.service
    sources = [source.name for source in service.search.sources]
    dimension = service.search.retrieval.preparation.encoders.dimension
    max_limit = service.settings.requests.max_limit
    return openapi_document(app.title, app.version, dimension, sources, max_limit, service.keyring is not None)
