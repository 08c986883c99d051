"""The application: FastAPI around our own fast routes."""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from threadpoolctl import threadpool_limits

from orchestrator import settings as settings_
from orchestrator.api import openapi
from orchestrator.api.drain import drained
from orchestrator.api.endpoint import endpoint, log, request_id
from orchestrator.api.problems import STATUSES, respond
from orchestrator.api.routes import OPERATIONS, Operation
from orchestrator.logs import configure
from orchestrator.settings import Settings
from orchestrator.warm import warm
from orchestrator.wiring import Service, opened

_log = logging.getLogger(__name__)


def create(settings: Settings | None = None) -> FastAPI:
    """The application for ``settings``, by default those of the environment. Stores open as it starts up."""
    chosen = settings or settings_.read()
    configure(chosen.log_level)

    def drain() -> None:
        app.state.draining = True

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opened(chosen) as service:
            await warm(service)
            # What is open now stays: a full collection over it would stop every request for a tenth of a second.
            gc.collect()
            gc.freeze()
            app.state.service = service
            # One query, one thread: what works in parallel here is queries, and BLAS would spin beside them.
            with threadpool_limits(1, user_api="blas"), drained(drain, chosen.drain_ms / 1_000):
                async with anyio.create_task_group() as group:
                    group.start_soon(_follow, service.refresh, chosen.follow_ms / 1_000)
                    if service.keys:
                        # By itself: a key that is taken back does not wait for whatever else there is to read.
                        group.start_soon(_follow, service.keys.refresh, chosen.follow_ms / 1_000)
                    group.start_soon(_replay, service)
                    if service.generations:
                        group.start_soon(service.generations.run)
                    yield
                    group.cancel_scope.cancel()
            gc.unfreeze()

    # No generated documentation pages: they load scripts from elsewhere.
    app = _App(title="Trivium", version=version("trivium"), lifespan=lifespan, docs_url=None, redoc_url=None)
    # Starlette's own routes: FastAPI's cost six times as much a request, and the types below check what it would.
    by_path: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, []).append(operation)
    for path, operations in by_path.items():
        serve = endpoint(path, {each.method: (each.handler, each.needs) for each in operations})
        app.router.routes.append(Route(_starlette(path), serve, methods=[each.method for each in operations]))
        app.direct |= {(each.method, path): serve for each in operations if each.method == "POST"}
    app.state.draining, app.state.settings = False, chosen
    app.router.redirect_slashes = False  # a path is what the document says, and no header decides where to go
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    app.add_exception_handler(HTTPException, _no_route)
    return app


class _App(FastAPI):
    """With a way past the middleware for what is asked most: seven layers that guard what :func:`endpoint` guards
    itself cost as much as an answer from the cache does.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.direct: dict[tuple[str, str], Callable[[Request], Awaitable[Response]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serve = self.direct.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if serve is None:
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        response = await serve(Request(scope, receive, send))
        await response(scope, receive, send)


def _document(app: FastAPI) -> dict[str, Any]:
    service: Service = app.state.service
    return openapi.document(app.title, app.version, service.model.dimension, keys=service.keys is not None)


async def _follow(refresh: Callable[[], None], seconds: float) -> None:
    """See what other processes write, soon after they have."""
    while True:
        await anyio.sleep(seconds)
        try:
            await anyio.to_thread.run_sync(refresh)
        except Exception:
            # Whatever it was, what is open goes on answering, and the next look may find what it needs.
            _log.exception("what was written elsewhere cannot be opened")


async def _replay(service: Service) -> None:
    """Deliver what a server could not take, soon after it can."""
    while service.replicator:
        try:
            await service.replay()
        except Exception:
            _log.exception("what waits in the journal cannot be delivered")
        await anyio.sleep(service.settings.replay_ms / 1_000)


async def _no_route(request: Request, error: Any) -> Response:
    """What Starlette itself refuses: a path or a method that there is not."""
    status = error.status_code if error.status_code in STATUSES else 500
    id_ = request_id(dict(request.scope["headers"]))
    response = respond(status, f"{request.method} {request.url.path[:200]}", id_)
    response.headers["X-Request-ID"] = id_
    response.headers["Connection"] = "close"  # whatever else it sends
    log(id_, request.method, "unknown", status)
    response.headers.update(error.headers or {})
    return response


class _Id(Convertor[str]):
    """Any text: an id may hold slashes, and line ends, too."""

    regex = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _Id())


def _starlette(path: str) -> str:
    return path.replace("{id}", "{id:id}")
