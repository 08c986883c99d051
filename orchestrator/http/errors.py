"""The table from errors to statuses, and problems on the wire (RFC 9457)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from adapters import AdapterError
from orchestrator.auth.keyring import UnknownKey
from orchestrator.auth.principal import Forbidden
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.decode import InvalidInput, describe_decode_error
from orchestrator.schema.problem import Problem
from orchestrator.service.errors import Ambiguous, NotFound, Overloaded

_log = logging.getLogger(__name__)

RETRY_AFTER_S = 1
"""Seconds after which a client may repeat a rejected request."""

CLIENT_DISCONNECTED = 499
"""Status in the log if the client has disconnected; it is never sent."""

STATUSES: Mapping[int, str] = {
    status: HTTPStatus(status).phrase for status in (400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 431, 500, 503)
}
"""Every error status of this service, with its title: the status phrase (RFC 9457, section 4.2.1)."""


_STATUS_BY_ERROR: dict[type[Exception], int] = {
    Forbidden: 403,
    NotFound: 404,
    Ambiguous: 409,
    BadRequest: 422,
    InvalidInput: 422,
    AdapterError: 503,
}
_FIELD = re.compile(r"[a-z_]+(?=[.\[:])")
"""The field that the message of an invalid request begins with."""
_RETRY = {"Retry-After": str(RETRY_AFTER_S)}
_HEADERS = {503: _RETRY, 429: _RETRY, 401: {"WWW-Authenticate": "Bearer"}}


class HttpError(Exception):
    """An error of the HTTP edge, with its status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def error_response(error: Exception, request_id: str) -> Response:
    """The response to a request that raised ``error``."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=CLIENT_DISCONNECTED)
    return _response(problem_of(error, request_id))


def problem_of(error: Exception, request_id: str) -> Problem:
    """What to tell the client that sent the request, or the line of a batch, that raised ``error``."""
    match error:
        case HttpError():
            return _problem(error.status, str(error), request_id)
        case UnknownKey():
            return _problem(401, "send an API key of this service as `Authorization: Bearer <key>`", request_id)
        case Forbidden() | NotFound() | Ambiguous() | BadRequest() | InvalidInput() | AdapterError():
            status = next(status for kind, status in _STATUS_BY_ERROR.items() if isinstance(error, kind))
            return _problem(status, str(error), request_id)
        case Overloaded():
            return _problem(429 if error.over_quota else 503, f"{error}: try again in a moment", request_id)
        case msgspec.ValidationError():
            return _problem(422, describe_decode_error(error), request_id)
        case msgspec.DecodeError() | UnicodeDecodeError():
            return _problem(422, f"the body is {describe_decode_error(error)}", request_id)
        case RecursionError():
            return _problem(422, "the body is not JSON of this schema: it is nested too deeply", request_id)
        case AllSourcesFailed():
            return _problem(503, "every source failed", request_id, _failures(error))
        case _:
            _log.error("request %s failed", request_id, exc_info=error)
            return _problem(500, "internal error; see the log for this request id", request_id)


def reason_for_operators(error: Exception) -> str:
    """Why the service did not answer: of an invalid request the name of the field. Never text of queries or documents,
    nor of keys; empty if the status says all.
    """
    match error:
        case BadRequest() | InvalidInput():
            field = _FIELD.match(str(error))
            return f"invalid {field[0]}" if field else "invalid request"
        case UnknownKey():
            return str(error) or "no valid API key"
        case HttpError() | Forbidden():
            return str(error)
        case AdapterError():
            return error.for_operators
        case AllSourcesFailed():
            return "; ".join(("every source failed", *_failures(error)))
        case Overloaded():
            return str(error)
        case _:
            return ""


def _failures(error: AllSourcesFailed) -> tuple[str, ...]:
    return tuple(f"{failed.source}: {failed.reason}" for failed in error.failures)


def problem(status: int, detail: str, request_id: str, errors: tuple[str, ...] = ()) -> Response:
    """A problem on the wire."""
    return _response(_problem(status, detail, request_id, errors))


def _problem(status: int, detail: str, request_id: str, errors: tuple[str, ...] = ()) -> Problem:
    return Problem(STATUSES[status], status, detail, request_id=request_id, errors=errors)


def _response(body: Problem) -> Response:
    status = body.status
    return Response(msgspec.json.encode(body), status, _HEADERS.get(status), media_type="application/problem+json")
