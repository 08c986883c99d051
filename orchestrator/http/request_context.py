"""One HTTP request: its id, its principal, its body within a limit, and the fields of its log line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from random import getrandbits

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from orchestrator.auth.principal import UNAUTHENTICATED, Principal
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.http.behalf import TEAMS, USER
from orchestrator.http.byte_budget import ByteBudget, ByteBudgets, HeldBytes
from orchestrator.http.errors import HttpError, error_response, reason_for_operators
from orchestrator.service.response_cache import EncodedResponse
from orchestrator.service.service import Service
from orchestrator.telemetry.tracing import RequestSpan

STATE_KEY = "trivium.http"
"""Key in the state of the ASGI scope: the context of the request."""

_MAX_JOINED_HERE = 1_048_576
"""Maximum bytes that are joined on the event loop: 64 MiB take 50 ms. CPython joins larger bodies without the GIL."""
_SINGLE = (b"authorization", b"content-length", b"content-type", b"host", b"origin", b"x-request-id", USER, TEAMS)
"""Headers that a request has once at most: of two values a proxy may check one, and this service read the other."""
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


@dataclass(slots=True)
class HttpContext:
    """One request at the edge.

    :param headers: names in lower case.
    :param log_fields: decisions and timings for the log line, never text.
    :param search: the response to a search, for metrics.
    :param span: of the request, if requests are traced.
    :param task: cancelled when the client disconnects.
    :param streams: whether it is received and answered at the same time, for as long as both go on.
    :param waits_for_rate: whether its response waits only because there are too many requests without a key.
    """

    request: Request
    headers: Mapping[bytes, bytes]
    request_id: str
    service: Service
    byte_budgets: ByteBudgets
    principal: Principal = UNAUTHENTICATED
    log_fields: dict[str, object] = field(default_factory=dict)
    search: EncodedResponse | None = None
    span: RequestSpan | None = None
    task: asyncio.Task[object] | None = None
    is_disconnected: bool = False
    streams: bool = False
    waits_for_rate: bool = False
    _is_body_read: bool = False
    _held_body: HeldBytes | None = None
    _held_response: HeldBytes | None = None

    @classmethod
    def of(cls, request: Request) -> HttpContext:
        """The context of a request; it is stored in the ASGI scope, too."""
        headers: dict[bytes, bytes] = dict(request.scope["headers"])
        state = request.app.state
        context = cls(request, headers, request_id(headers), state.service, state.byte_budgets)
        request.scope.setdefault("state", {})[STATE_KEY] = context
        return context

    def response_to(self, error: Exception) -> Response:
        """The response to an error. If the request is not the reason for it, the log line says what is."""
        if isinstance(error, AllSourcesFailed):
            self.request.app.state.metrics.record_failed_search(error)
        if reason := reason_for_operators(error):
            self.log_fields["reason"] = reason
        return error_response(error, self.request_id)

    def require_single_headers(self) -> None:
        """Check that no header is repeated that has one value (RFC 9110, section 5.3; RFC 9112, section 3.2).

        :raises HttpError: 400 if one is.
        """
        sent = self.request.scope["headers"]
        if len(sent) != len(self.headers):
            names = [name for name, _ in sent]
            if repeated := [name.decode() for name in _SINGLE if names.count(name) > 1]:
                raise HttpError(400, f"the header {repeated[0]!r} is repeated, one is allowed")

    @property
    def has_unread_body(self) -> bool:
        """Whether there is, or may be, a body that was not read to its end."""
        if self._is_body_read or self.streams:
            return False
        return b"transfer-encoding" in self.headers or self.headers.get(b"content-length", b"0") != b"0"

    def cancel_on_disconnect(self) -> None:
        """Cancel the request from now on if the client disconnects."""
        self.task = asyncio.current_task()

    async def body(self, max_bytes: int) -> bytes:
        """The whole body.

        :raises HttpError: as :meth:`chunks`.
        """
        chunks = [chunk async for chunk in self.chunks(max_bytes, self.byte_budgets.requests)]
        if sum(map(len, chunks)) <= _MAX_JOINED_HERE:
            return b"".join(chunks)
        return await anyio.to_thread.run_sync(b"".join, chunks)

    async def chunks(self, max_bytes: int, budget: ByteBudget) -> AsyncIterator[bytes]:
        """The body as it arrives. Its bytes are held in the budget until the request ends.

        :raises HttpError: 413 as soon as it is known to be larger; 429 or 503 if the budget has not enough left.
        """
        header = self.headers.get(b"content-length", b"")
        declared = int(header) if header.isdigit() else 0
        if declared > max_bytes:
            raise HttpError(413, f"the body has {declared} bytes, allowed are {max_bytes}")
        self._held_body = HeldBytes(budget, self.principal.scope.tenant)
        self._held_body.grow_to(declared)
        size = 0
        async for chunk in self.request.stream():
            size += len(chunk)
            if size > max_bytes:
                raise HttpError(413, f"the body has more than the {max_bytes} bytes allowed")
            self._held_body.grow_to(size)
            yield chunk
        self._is_body_read = True

    def hold_response(self, size: int) -> None:
        """Hold the bytes of the response until the request ends.

        :raises HttpError: as :meth:`ByteBudget.take`.
        """
        if self.principal is not UNAUTHENTICATED:  # what others may read is in memory once for all
            self._held_response = HeldBytes(self.byte_budgets.responses, self.principal.scope.tenant)
            self._held_response.grow_to(size)

    def give_back_bytes(self) -> None:
        """End the request: it holds no bytes any more."""
        for held in (self._held_body, self._held_response):
            if held:
                held.give_back()


def request_id(headers: Mapping[bytes, bytes]) -> str:
    """The client's own request id if it is a plain word; else a new one."""
    given = headers.get(b"x-request-id", b"")
    if given and _REQUEST_ID.fullmatch(given):
        return given.decode()
    return f"{getrandbits(128):032x}"  # an identifier, not a secret


def raw_path(scope: Scope) -> str:
    """The path as it was sent: an encoded slash is still one."""
    sent: bytes = scope.get("raw_path") or scope["path"].encode()
    return sent.partition(b"?")[0].decode("latin-1")


def json_response(body: object, status: int = 200) -> Response:
    """A response with a body of one of the schema's types."""
    return encoded_response(msgspec.json.encode(body), status)


def encoded_response(body: bytes, status: int = 200) -> Response:
    """A response with a body that is JSON already."""
    return Response(body, status, media_type="application/json")
