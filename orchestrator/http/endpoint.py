"""The boundary of every request: it adds an id, writes one log line, and turns exceptions into responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import perf_counter
from traceback import clear_frames
from typing import TypeAlias

from fastapi import APIRouter
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters import Unavailable
from orchestrator.auth.principal import UNAUTHENTICATED
from orchestrator.http.authorization import identify
from orchestrator.http.behalf import on_behalf
from orchestrator.http.metrics import ServiceMetrics
from orchestrator.http.request_context import STATE_KEY, HttpContext
from orchestrator.http.routes import LIVENESS, METRICS, READINESS, Operation
from orchestrator.telemetry.access_log import log_request
from orchestrator.telemetry.tracing import Tracing

Handler: TypeAlias = Callable[[HttpContext], Awaitable[Response]]

OPERATION_KEY = "trivium.operation"
"""Key in the state of the ASGI scope: the operation of the request."""

_PROBES = (LIVENESS, READINESS)
_PERIODIC = (*_PROBES, METRICS)
"""Requests that machines send every few seconds: those that succeed are logged at the level ``debug``."""
_PART_BYTES = 65_536
"""Maximum size of what is written at once: the connection copies it."""
_STOPPING = Unavailable("the service is stopping: try again")


class _AnyText(Convertor[str]):
    """An id in a path may contain slashes and line ends."""

    regex = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _AnyText())


class RequestBoundary:
    """ASGI middleware around all routes. Every error becomes a response here, or in FastAPI's handler of errors, which
    raises it again after the response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102  # see the class
        if scope["type"] != "http":
            await self._app(scope, receive, _without_traceback(scope, send))
            return
        start = perf_counter()
        metrics: ServiceMetrics = scope["app"].state.metrics
        context = HttpContext.of(Request(scope, receive))
        tracing: Tracing | None = scope["app"].state.tracing
        if tracing:
            context.span = tracing.start(scope["method"], context.headers)
        outgoing = _Outgoing(context, scope, send, start)
        metrics.in_flight += 1
        uses = metrics.uses
        uses.begin()
        try:
            context.require_single_headers()
            await self._app(scope, receive, outgoing.send)
        except asyncio.CancelledError:
            if context.is_disconnected and outgoing.is_started:
                return
            if context.is_disconnected:
                await context.response_to(ClientDisconnect())(scope, receive, outgoing.send)
                return
            if not outgoing.is_started:  # the process stops after the grace period
                await context.response_to(_STOPPING)(scope, receive, outgoing.send)
            raise
        except Exception as error:
            if not outgoing.is_started:
                await context.response_to(error)(scope, receive, outgoing.send)
            elif not outgoing.is_ended:
                raise
            _clear_variables(error)
        finally:
            metrics.in_flight -= 1
            uses.end()
            context.give_back_bytes()
            outgoing.record(metrics)  # after the response, so that the client does not wait for it
            # The scope and the context reference each other. Otherwise each request would be left to the garbage
            # collector, which stops all threads for 100 ms and longer.
            del scope["state"][STATE_KEY]


def _without_traceback(scope: Scope, send: Send) -> Send:
    """Sends the reason of a failed start in one line, if it is known, instead of the traceback."""

    async def send_reason(message: Message) -> None:
        if message["type"] == "lifespan.startup.failed" and (reason := scope["app"].state.start_failure):
            message = {**message, "message": f"the service cannot start: {reason}"}
        await send(message)

    return send_reason


def _clear_variables(error: BaseException) -> None:
    """Clear the local variables in the tracebacks of an error and its causes. They reference the error and the request,
    which would be left to the garbage collector."""
    raised: BaseException | None = error
    while raised is not None:
        clear_frames(raised.__traceback__)
        raised = raised.__context__


class _Outgoing:
    """Adds headers to the response, and writes its log line."""

    def __init__(self, context: HttpContext, scope: Scope, send: Send, start: float) -> None:
        self.is_ended = False
        self._status: int | None = None
        self._context = context
        self._scope = scope
        self._send = send
        self._start = start

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            context = self._context
            context.hold_response(_content_length(message))
            await self._wait_for_rate()
            self._status = message["status"]
            if not context.streams:
                context.task = None  # the response has begun: there is nothing to cancel
            headers = [(b"x-request-id", context.request_id.encode())]
            if self._scope["app"].state.draining or context.has_unread_body:
                # The next request then reaches another process; the rest of a body is not read.
                headers.append((b"connection", b"close"))
            message["headers"] = [*message.get("headers", ()), *headers]
        else:
            body, start = message.get("body", b""), 0
            while len(body) - start > _PART_BYTES:
                part = body[start : start + _PART_BYTES]
                await self._send({"type": "http.response.body", "body": part, "more_body": True})
                start += _PART_BYTES
            message = {**message, "body": body[start:]} if start else message
            self.is_ended = not message.get("more_body", False)
        await self._send(message)

    async def _wait_for_rate(self) -> None:
        """Wait if there are too many requests without a valid key; probes never wait."""
        context, rate = self._context, self._scope["app"].state.unkeyed_rate
        if context.principal is not UNAUTHENTICATED or self._scope["state"].get(OPERATION_KEY) in _PROBES:
            return
        if not context.waits_for_rate and rate.is_exceeded():  # it has waited if the process is stopping
            context.waits_for_rate = True
            await rate.wait()
            context.waits_for_rate = False

    @property
    def is_started(self) -> bool:
        """Whether the response has begun."""
        return self._status is not None

    def record(self, metrics: ServiceMetrics) -> None:
        """Write the log line of a response that has begun, and record it for the metrics. Its time ends when
        its last byte was passed on.
        """
        if self._status is None:
            return
        seconds = perf_counter() - self._start
        context, principal = self._context, self._context.principal
        operation: Operation | None = self._scope["state"].get(OPERATION_KEY)
        known_method, path = (operation.method, operation.path) if operation else ("unknown", "unknown")
        method, trace_id = self._scope["method"], context.span.trace_id if context.span else ""
        metrics.record(known_method, path, self._status, seconds, context.search, trace_id)
        if context.span:
            attributes = {
                "http.request.method": method,
                "http.route": path,
                "http.response.status_code": self._status,
                "trivium.request_id": context.request_id,
            }
            context.span.end(f"{method} {path}", attributes, context.search.timings if context.search else None)
        if trace_id:
            context.log_fields["trace_id"] = trace_id
        log_request(
            context.request_id,
            method,
            path,
            self._status,
            level=_log_level(operation, self._status),
            ms=round(seconds * 1_000, 3),
            key=principal.name,
            tenant=principal.scope.tenant,
            environment=principal.scope.environment,
            **context.log_fields,
        )


def _log_level(operation: Operation | None, status: int) -> int:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return logging.WARNING
    return logging.DEBUG if operation in _PERIODIC and status == HTTPStatus.OK else logging.INFO


def _content_length(message: Message) -> int:
    """The size of a response, from its first message; 0 if it is not known."""
    return next((int(value) for name, value in message.get("headers", ()) if name == b"content-length"), 0)


def serves(router: APIRouter, operation: Operation) -> Callable[[Handler], Handler]:
    """Registers the handler of an operation. It is called for requests whose principal has the role of the operation.

    FastAPI's own endpoints parse the query before they know who sent it, and take longer than a cached response.
    """

    def register(handler: Handler) -> Handler:
        router.add_route(operation.path.replace("{id}", "{id:id}"), endpoint_of(operation, handler), [operation.method])
        return handler

    return register


def endpoint_of(operation: Operation, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of an operation for a route of Starlette."""

    async def authorized(request: Request) -> Response:
        context: HttpContext = request.scope["state"][STATE_KEY]
        request.scope["state"][OPERATION_KEY] = operation
        context.principal = identify(context.service, context.headers, operation.role)
        # Afterwards, so that the log line of a refused request has its key.
        context.principal.require(operation.role)
        if operation.role != "none":
            context.principal = on_behalf(context.principal, context.headers)
        return await handler(context)

    return authorized
