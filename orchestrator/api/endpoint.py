"""What every request has around it: an id, a body within bounds, one log line, and no exception that escapes."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import getrandbits
from time import perf_counter
from typing import TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from orchestrator.api.problems import HttpError, problem
from orchestrator.wiring import Service

access_log = logging.getLogger("trivium.access")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


@dataclass(slots=True)
class Context:
    """One request at the edge. ``notes`` go into its log line: decisions and timings, never text."""

    request: Request
    request_id: str
    service: Service
    notes: dict[str, object] = field(default_factory=dict)

    async def body(self, limit: int) -> bytes:
        """The whole body.

        :raises HttpError: 413 as soon as it is known to be larger than ``limit`` bytes.
        """
        declared = self.request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise HttpError(413, f"the body has {declared} bytes, allowed are {limit}")
        parts, size = [], 0
        async for part in self.request.stream():
            size += len(part)
            if size > limit:
                raise HttpError(413, f"the body has more than the {limit} bytes allowed")
            parts.append(part)
        return b"".join(parts)


Handler: TypeAlias = Callable[[Context], Awaitable[Response]]


def endpoint(path: str, handlers: Mapping[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
    """The Starlette endpoint of a path's handlers, by method; ``path`` is what the log calls it, ids left out."""

    async def serve(request: Request) -> Response:
        began = perf_counter()
        context = Context(request, request_id(request), request.app.state.service)
        try:
            response = await handlers["GET" if request.method == "HEAD" else request.method](context)
        except Exception as error:
            response = problem(error, context.request_id)
        response.headers["X-Request-ID"] = context.request_id
        if access_log.isEnabledFor(logging.INFO):
            line = {
                "request_id": context.request_id,
                "method": request.method,
                "path": path,
                "status": response.status_code,
                "ms": round((perf_counter() - began) * 1_000, 3),
                **context.notes,
            }
            access_log.info(msgspec.json.encode(line).decode())
        return response

    return serve


def json(body: object, status: int = 200) -> Response:
    """An answer."""
    return encoded(msgspec.json.encode(body), status)


def encoded(body: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(body, status, media_type="application/json")


def request_id(request: Request) -> str:
    """The caller's own id if it is a plain word; else a new one."""
    given = request.headers.get("x-request-id", "")
    return given if given and _REQUEST_ID.fullmatch(given) else f"{getrandbits(128):032x}"  # a name, and no secret
