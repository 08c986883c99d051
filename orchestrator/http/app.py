"""The application: Starlette with the route of searches, and FastAPI for all others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

import anyio
import anyio.to_thread
import msgspec
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from threadpoolctl import threadpool_limits

from adapters import AdapterError
from adapters.model.errors import reason_of
from adapters.model.spelling import nearest
from orchestrator.auth.keyring import KeyFileError
from orchestrator.bootstrap.live_service import LiveService
from orchestrator.http import batch_route, console_files, documents, feedback_route, operations
from orchestrator.http.byte_budget import ByteBudgets
from orchestrator.http.endpoint import RequestBoundary, endpoint_of
from orchestrator.http.errors import STATUSES, problem
from orchestrator.http.interpreter import tuned_for_serving
from orchestrator.http.lifecycle import drain_on_sigterm
from orchestrator.http.mcp_route import mcp, mcp_transport
from orchestrator.http.metrics import ServiceMetrics
from orchestrator.http.openapi import openapi_document
from orchestrator.http.protocol import ConnectionLimits
from orchestrator.http.request_context import STATE_KEY, HttpContext, encoded_response, raw_path
from orchestrator.http.routes import MCP, OPENAPI, OPERATIONS, SEARCH, methods_of
from orchestrator.http.search_route import search
from orchestrator.http.unkeyed_rate import UnkeyedRate
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import SettingsError, load
from orchestrator.telemetry.logging import configure_logging
from orchestrator.telemetry.tracing import Tracing, is_enabled

_TITLE, _VERSION = "Trivium", version("trivium")
_MAX_DRAIN_S = 1.0
_DRAIN_FRACTION = 0.1
"""Fraction of the shutdown grace period for which requests are accepted after SIGTERM."""


def create_app(settings: Settings | None = None) -> Starlette:
    """The application for ``settings``, by default those of the environment. The service opens at start-up."""
    chosen = settings or load()
    configure_logging(chosen.server.log_level)
    drain_s = min(chosen.server.shutdown_grace_ms * _DRAIN_FRACTION / 1_000, _MAX_DRAIN_S)

    def start_draining() -> None:
        app.state.draining = True

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        failure: Exception | None = None
        # Around all services: when one of them is closed, it sets the limit back that it found.
        with threadpool_limits(1, user_api="blas"):
            async with anyio.create_task_group() as group:
                try:
                    await LiveService(chosen, group, partial(_use, app.state)).start()
                except (AdapterError, KeyFileError, SettingsError, OSError) as error:
                    app.state.start_failure = reason_of(error)
                    failure = error  # raised outside of the group, which would put it into another exception
                else:
                    app.state.tracing = Tracing(_VERSION) if is_enabled() else None
                    with tuned_for_serving(), drain_on_sigterm(start_draining, drain_s):
                        async with mcp_transport() as app.state.mcp:
                            group.start_soon(app.state.metrics.run)
                            yield
                group.cancel_scope.cancel()
        if failure:
            raise failure
        if app.state.tracing:
            await anyio.to_thread.run_sync(app.state.tracing.close)

    fast = Route(SEARCH.path, endpoint_of(SEARCH, search), methods=[SEARCH.method])
    others = _others()
    app = Starlette(
        routes=[fast],
        middleware=[Middleware(RequestBoundary)],
        exception_handlers={HTTPException: _no_route},
        lifespan=lifespan,
    )
    app.router.default = others  # not mounted: a mount matches no path with a line feed, which an id may have
    others.state = app.state
    app.router.redirect_slashes = False  # a redirect would use the Host header
    app.state.draining = False
    app.state.start_failure = ""
    app.state.mcp = None
    app.state.byte_budgets = ByteBudgets()
    app.state.unkeyed_rate = UnkeyedRate()
    app.state.connection_limits = ConnectionLimits(client_timeout_s=chosen.server.client_timeout_ms / 1_000)
    return app


def _use(state: State, service: Service) -> Callable[[], Awaitable[None]]:
    """Have requests use a service from now on."""
    metrics: ServiceMetrics | None = getattr(state, "metrics", None)
    if metrics is None:
        metrics = state.metrics = ServiceMetrics(service)
    else:
        metrics.follow(service)
    state.openapi = _openapi(service)
    state.service = service
    return metrics.uses.ended


def _openapi(service: Service) -> bytes:
    """The OpenAPI document, encoded once: a client without a key may request it."""
    sources = [source.name for source in service.search.sources]
    dimension = service.search.retrieval.preparation.encoders.dimension
    max_limit = service.settings.requests.max_limit
    document = openapi_document(_TITLE, _VERSION, dimension, sources, max_limit, service.keyring is not None)
    return msgspec.json.encode(document)


def _others() -> FastAPI:
    """All routes but that of searches."""
    # No generated documentation pages: they load scripts from other hosts.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(batch_route.router)
    app.router.routes.append(documents.neighbors_route)
    app.include_router(documents.router)
    app.include_router(feedback_route.router)
    app.include_router(operations.router)
    app.include_router(console_files.router)
    app.router.routes.append(Route(MCP.path, endpoint_of(MCP, mcp), methods=[MCP.method]))
    app.router.routes.append(Route(OPENAPI.path, endpoint_of(OPENAPI, _send_openapi), methods=[OPENAPI.method]))
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(Exception, _failed)
    return app


async def _no_route(request: Request, error: Exception) -> Response:
    """A path or a method that does not exist. All operations of the path count for ``Allow``, not only the first."""
    methods = methods_of(raw_path(request.scope))
    status = error.status_code if isinstance(error, HTTPException) and error.status_code in STATUSES else 500
    if status == 404 and methods and request.method not in methods:
        status = 405  # the path of searches, which is not one of FastAPI's
    detail = f"{request.method} {request.url.path[:200]}"
    if status == 404 and (near := nearest(request.url.path, {each.path for each in OPERATIONS})):
        detail += f"; the nearest path is {near}"
    if status != 405 or not isinstance(error, HTTPException):
        return problem(status, detail, _context(request).request_id)
    first = (error.headers or {}).get("Allow", "")
    allowed = ", ".join(sorted(methods | {each.strip() for each in first.split(",") if each.strip()}))
    response = problem(status, f"{detail}; allowed are {allowed}", _context(request).request_id)
    response.headers["Allow"] = allowed
    return response


async def _failed(request: Request, error: Exception) -> Response:
    return _context(request).response_to(error)


def _context(request: Request) -> HttpContext:
    context: HttpContext = request.scope["state"][STATE_KEY]
    return context


async def _send_openapi(context: HttpContext) -> Response:
    return encoded_response(context.request.app.state.openapi)
