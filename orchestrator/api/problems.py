"""The one table from errors to statuses, and how a problem looks on the wire (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from adapters import AdapterError
from orchestrator.admission import Overloaded
from orchestrator.api.authorize import NotAllowed
from orchestrator.complaint import complaint
from orchestrator.contract import Problem
from orchestrator.keys import KeyUnknown
from orchestrator.outcome import AllSourcesFailed
from orchestrator.plan import BadRequest

_log = logging.getLogger(__name__)

RETRY_AFTER_S = 1
"""Seconds that a caller is asked to wait before it tries a service again that could not answer."""

CLIENT_GONE = 499
"""For our log alone: nobody is left to be told."""

STATUSES: Mapping[int, str] = {
    400: "not HTTP",
    401: "no key",
    403: "not allowed",
    404: "not found",
    405: "method not allowed",
    408: "request too slow",
    413: "body too large",
    422: "request not understood",
    429: "too many requests",
    431: "headers too large",
    500: "internal error",
    503: "service unavailable",
}
"""Every status of an error that this service gives, with its title."""


_RETRY = {"Retry-After": str(RETRY_AFTER_S)}
_HEADERS = {503: _RETRY, 429: _RETRY, 401: {"WWW-Authenticate": "Bearer"}}


class HttpError(Exception):
    """An error that has a status of its own, raised at the edge only."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def problem(error: Exception, request_id: str) -> Response:
    """The answer to a request that raised ``error``."""
    match error:
        case HttpError():
            return respond(error.status, str(error), request_id)
        case KeyUnknown():
            return respond(401, "send one of this service's keys as `Authorization: Bearer <key>`", request_id)
        case NotAllowed():
            return respond(403, str(error), request_id)
        case Overloaded():
            return respond(429 if error.theirs else 503, f"{error}: try again in a moment", request_id)
        case BadRequest():
            return respond(422, str(error), request_id)
        case msgspec.ValidationError():
            return respond(422, complaint(error), request_id)
        case msgspec.DecodeError() | UnicodeDecodeError():
            return respond(422, f"the body is not JSON as asked: {complaint(error)}", request_id)
        case RecursionError():
            return respond(422, "the body is not JSON as asked: it is nested too deeply", request_id)
        case ClientDisconnect():
            return Response(status_code=CLIENT_GONE)
        case AllSourcesFailed():
            failures = tuple(f"{failed.source}: {failed.reason}" for failed in error.failures)
            return respond(503, "no source could answer", request_id, failures)
        case AdapterError():
            return respond(503, str(error), request_id)
        case _:
            _log.error("request %s failed", request_id, exc_info=error)
            return respond(500, "a defect of ours; the log has it under this request id", request_id)


def respond(status: int, detail: str, request_id: str, errors: tuple[str, ...] = ()) -> Response:
    """A problem on the wire."""
    body = Problem(STATUSES[status], status, detail, request_id=request_id, errors=errors)
    return Response(msgspec.json.encode(body), status, _HEADERS.get(status), media_type="application/problem+json")
