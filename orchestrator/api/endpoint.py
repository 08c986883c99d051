"""What every request has around it: an id, who asks, a body within bounds, one log line, and no exception that
escapes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import getrandbits
from time import perf_counter
from typing import TypeAlias

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from orchestrator.api.authorize import NOBODY, Need, allow, identify
from orchestrator.api.problems import HttpError, problem
from orchestrator.keys import Identity
from orchestrator.wiring import Service

TASK, GONE = "trivium.task", "trivium.gone"
"""Of the state in a request's ASGI scope: the task that ends with the connection; whether it did."""

access_log = logging.getLogger("trivium.access")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


@dataclass(slots=True)
class Context:
    """One request at the edge. ``notes`` go into its log line: decisions and timings, never text."""

    request: Request
    headers: Mapping[bytes, bytes]
    request_id: str
    service: Service
    identity: Identity = NOBODY
    notes: dict[str, object] = field(default_factory=dict)
    _read: bool = False

    @property
    def unread(self) -> bool:
        """Whether there is a body, or may be, that nobody has read to its end."""
        if self._read:
            return False
        return b"transfer-encoding" in self.headers or self.headers.get(b"content-length", b"0") != b"0"

    def end_with_connection(self) -> None:
        """From here on, whoever hangs up cancels this: nobody is left to read what would come of it."""
        self.request.scope.setdefault("state", {})[TASK] = asyncio.current_task()

    async def body(self, limit: int) -> bytes:
        """The whole body.

        :raises HttpError: 413 as soon as it is known to be larger than ``limit`` bytes.
        """
        declared = self.headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            raise HttpError(413, f"the body has {int(declared)} bytes, allowed are {limit}")
        parts, size = [], 0
        async for part in self.request.stream():
            size += len(part)
            if size > limit:
                raise HttpError(413, f"the body has more than the {limit} bytes allowed")
            parts.append(part)
        self._read = True
        return b"".join(parts)


Handler: TypeAlias = Callable[[Context], Awaitable[Response]]


def endpoint(path: str, handlers: Mapping[str, tuple[Handler, Need]]) -> Callable[[Request], Awaitable[Response]]:
    """The Starlette endpoint of a path's handlers, by method, each with what it needs.

    ``path`` is what the log calls it, ids left out.
    """

    async def serve(request: Request) -> Response:
        began = perf_counter()
        headers: dict[bytes, bytes] = dict(request.scope["headers"])  # names in small letters, as ASGI has it
        context = Context(request, headers, request_id(headers), request.app.state.service)
        try:
            handler, need = handlers["GET" if request.method == "HEAD" else request.method]
            context.identity = identify(context.service, headers, need)
            allow(context.identity, need)
            response = await handler(context)
        except asyncio.CancelledError:
            if GONE not in request.scope.get("state", {}):
                raise
            response = problem(ClientDisconnect(), context.request_id)
        except Exception as error:
            response = problem(error, context.request_id)
        request.scope.get("state", {}).pop(TASK, None)  # it is answered: nothing is left to cancel
        response.headers["X-Request-ID"] = context.request_id
        if request.app.state.draining or context.unread:
            # Who asks again finds somebody who stays; and what is left of a body is not waited for.
            response.headers["Connection"] = "close"
        log(
            context.request_id,
            request.method,
            path,
            response.status_code,
            ms=round((perf_counter() - began) * 1_000, 3),
            key=context.identity.name,
            tenant=context.identity.caller.scope.tenant,
            environment=context.identity.caller.scope.environment,
            **context.notes,
        )
        return response

    return serve


def log(request_id: str, method: str, path: str, status: int, **more: object) -> None:
    """One line for each request, whatever became of it."""
    if access_log.isEnabledFor(logging.INFO):
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "request_id": request_id, "method": method, "path": path, "status": status, **more}
        access_log.info(msgspec.json.encode(line).decode())


def json(body: object, status: int = 200) -> Response:
    """An answer."""
    return encoded(msgspec.json.encode(body), status)


def encoded(body: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(body, status, media_type="application/json")


def request_id(headers: Mapping[bytes, bytes]) -> str:
    """The caller's own id if it is a plain word; else a new one."""
    given = headers.get(b"x-request-id", b"")
    if given and _REQUEST_ID.fullmatch(given):
        return given.decode()
    return f"{getrandbits(128):032x}"  # a name, and no secret
