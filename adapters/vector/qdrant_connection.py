"""Connections to Qdrant, and what its errors mean."""

from __future__ import annotations

from http import HTTPStatus

import grpc
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from adapters.model.errors import AdapterError, BadResponse, ExecutionFailed, Rejected, TimedOut, Unavailable
from adapters.servers.bounded_http import BoundedTransport
from adapters.servers.server import VECTOR_SCHEMES, Address, Limits, error_of_status, unreachable, unreadable

_MAX_RESPONSE_BYTES = 67_108_864
_GRPC_OPTIONS = {
    # A connection that a firewall has dropped without a word is noticed after 12 s, not after the system's 15 minutes.
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 2_000,
    "grpc.http2.ping_timeout_ms": 2_000,
    # A server that has been restarted is found within a second, by default after up to two minutes.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.min_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 1_000,
}
_LIMIT = "qdrant has reached one of its limits"
_UNAVAILABLE_CODES = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.NOT_FOUND,  # the collection does not exist yet
}
_FAILED_CODES = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
_REJECTED_CODES = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
}


def connect(address: Address, api_key: str | None, limits: Limits) -> AsyncQdrantClient:
    """A client of the server at ``address``. Call it on the event loop that will use the client."""
    secure = address.scheme.endswith("s")
    over_grpc = address.scheme.startswith("qdrant+grpc")
    return AsyncQdrantClient(
        host=address.host,
        port=VECTOR_SCHEMES["qdrant+http"] if over_grpc else address.port,
        grpc_port=address.port if over_grpc else VECTOR_SCHEMES["qdrant+grpc"],
        prefer_grpc=over_grpc,
        https=secure,
        api_key=api_key,
        # The client takes whole seconds only; the exact limit is applied around every call.
        timeout=int(max(limits.read_timeout_s, limits.write_timeout_s)) + 1,
        check_compatibility=False,
        transport=BoundedTransport(limits.max_connections, _MAX_RESPONSE_BYTES),
        grpc_options={"grpc.max_receive_message_length": _MAX_RESPONSE_BYTES, **_GRPC_OPTIONS},
    )


def translate(error: Exception) -> AdapterError | None:
    """The adapter error for an error of Qdrant's client."""
    match error:
        case grpc.aio.AioRpcError():
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT and _is_limit(error.details() or ""):
                return Unavailable(_LIMIT)
            return _error_of_code(error.code())
        case UnexpectedResponse(status_code=HTTPStatus.BAD_REQUEST, content=content) if _is_limit(
            content.decode(errors="replace")
        ):
            return Unavailable(_LIMIT)
        case UnexpectedResponse(status_code=status):
            return error_of_status(status or 0, f"qdrant returned status {status}")
        case QdrantException():
            return Unavailable("qdrant receives too many requests")
        case ResponseHandlingException(source=ValueError() as cause):  # a response that does not follow the API
            return unreadable("qdrant's response", cause)
        case ResponseHandlingException(source=cause):
            return unreachable("qdrant", cause)
        case ValueError() | AssertionError():
            # The client asserts that a response has a result; its local mode raises ValueError for a status.
            return unreadable("qdrant's response", error)
        case _:
            return None


def _is_limit(message: str) -> bool:
    """Whether a request is refused in Qdrant's strict mode: for the number of points, memory or disk of the server.

    The same write succeeds later. The limit of points in one request is none of these: smaller requests succeed now.
    Messages: ``lib/collection/src/operations/verification`` in Qdrant's source.
    """
    return (" limit of " in message and "reached!" in message) or " usage is at " in message


def _error_of_code(code: grpc.StatusCode) -> AdapterError:
    """The error for a gRPC status."""
    message = f"qdrant returned status {code.name}"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(message)
    if code in _FAILED_CODES:
        return ExecutionFailed(message)
    if code in _UNAVAILABLE_CODES:
        return Unavailable(message)
    return (Rejected if code in _REJECTED_CODES else BadResponse)(message)
