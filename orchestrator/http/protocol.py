"""uvicorn's HTTP protocol with limits: the size of headers, the time to send a request and to read its response, one
request at a time. A request is cancelled when its client disconnects.

It overrides methods of uvicorn that are not its public interface, so ``pyproject.toml`` excludes releases that this
file was not tested with. ``docs/decisions/0014-connection-limits.md`` gives the reasons.
"""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from orchestrator.http.errors import problem
from orchestrator.http.request_context import STATE_KEY, HttpContext
from orchestrator.telemetry.access_log import log_request

_KERNEL_BUFFER_BYTES = 131_072
"""Size of the buffers of the kernel for what is sent and for what is received; it takes twice as much. By itself it
takes up to ten megabytes for a connection, which count as memory of the container."""
_DISCARD_S = 1.0
"""Seconds for which the rest of a refused request is read and discarded."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each connection, and the number of connections to each process.

    :param max_header_bytes: of a request's headers, or of a trailer.
    :param max_path_bytes: of a request's path; an id of 512 characters has up to 6,144 bytes.
    :param client_timeout_s: time limit for a client to send a request. A client that reads a response is observed for
        as long, again and again.
    :param min_read_bytes_per_s: that a client reads, unless it has read everything.
    """

    max_connections: int = 1_024
    max_header_bytes: int = 32_768
    max_path_bytes: int = 8_192
    client_timeout_s: float = 30.0
    min_read_bytes_per_s: int = 16_384


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection, within the :class:`ConnectionLimits` of the application.

    A pipelined request is not read: the connection is closed after the response to the request before it, and the
    client sends the pipelined request again (RFC 9112, section 9.3.2). Parsed requests that wait would need a hundred
    times the memory of their bytes.
    """

    _header_bytes = 0
    """Bytes since headers began, or since the last chunk of a body, including those that the parser buffers."""
    _headers_too_large = False
    _ignores_input = False
    """Whether further input is not parsed: the request was refused, or another one was pipelined."""
    _request_timer: asyncio.TimerHandle | None = None
    """Runs while a request is awaited, and until all of it was received."""
    _reader_timer: asyncio.TimerHandle | None = None
    """Runs from the moment when the client does not read as fast as a response is written, until it was written."""
    _written_bytes = 0
    """By requests to their responses, since the connection was made."""

    def __init__(self, config: Config, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self._limits: ConnectionLimits = config.loaded_app.state.connection_limits

    @property
    def _running_cycle(self) -> RequestResponseCycle | None:
        """The request that is being received or processed."""
        return self.cycle if self.cycle and not self.cycle.response_complete else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection: socket.socket = transport.get_extra_info("socket")
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, buffer, _KERNEL_BUFFER_BYTES)
        self._start_request_timer()
        if len(self.connections) > self._limits.max_connections and not self._close_longest_idle():
            self._refuse(503)

    def _close_longest_idle(self) -> bool:
        """Close the idle connection whose time limit ends first. Returns whether there was one."""
        protocols = [each for each in self.connections if isinstance(each, LimitedHttpProtocol)]
        idle = min(protocols, key=lambda each: each.idle_until)
        if idle.idle_until == math.inf or idle is self:
            return False
        idle.transport.abort()
        return True

    @property
    def _streams(self) -> bool:
        """Whether the request is received and answered at the same time."""
        context = _context_of(self._running_cycle)
        return context is not None and context.streams

    @property
    def idle_until(self) -> float:
        """When the wait for a request, or for the rest of one, times out, by the clock of the event loop.

        Infinite if the connection does not wait for either; 0 if a response without a key waits for its turn.
        """
        timer = self._request_timer or self.timeout_keep_alive_task
        cycle = self._running_cycle
        if (context := _context_of(cycle)) and context.waits_for_rate:
            return 0.0
        is_processed = cycle is not None and (cycle.response_started or not cycle.more_body)
        is_used = is_processed or self._ignores_input or self.transport.is_closing()
        return math.inf if is_used or timer is None or timer.cancelled() else timer.when()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_timer()
        self._stop_reader_timer()
        if (context := _context_of(self._running_cycle)) and context.task:
            context.is_disconnected = True
            context.task.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._reader_timer:
            self._start_reader_timer()

    def resume_writing(self) -> None:
        if not self._running_cycle:
            self._stop_reader_timer()
        super().resume_writing()

    def on_response_complete(self) -> None:
        if not self.flow.write_paused:
            self._stop_reader_timer()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            # uvloop reads from a connection up to 32 times before it serves the others, unless it is paused.
            self.flow.pause_reading()
            self.loop.call_soon(self._resume_discarding)
            return
        limit = self._limits.max_header_bytes
        for start in range(0, len(data), limit):  # so that one piece is never larger than the limit
            self._receive(data[start : start + limit] if len(data) > limit else data)

    def _receive(self, data: bytes) -> None:
        if self._ignores_input or self.transport.is_closing():
            return
        self._header_bytes += len(data)
        super().data_received(data)
        if self._ignores_input or self.transport.is_closing():
            return
        if self._header_bytes > self._limits.max_header_bytes:
            self._refuse(431)
        elif not (self._request_timer or self._running_cycle):
            self._start_request_timer()  # blank lines between two requests: uvicorn's own timer has stopped

    def on_message_begin(self) -> None:
        if self._running_cycle:
            raise ValueError  # the parser stops and reports an error
        super().on_message_begin()
        self._header_bytes = 0
        self._start_request_timer()

    def on_headers_complete(self) -> None:
        self._header_bytes = 0
        size = len(self.url) + sum([len(name) + len(value) for name, value in self.headers])
        path, _, _ = self.url.partition(b"?")
        if size > self._limits.max_header_bytes or len(path) > self._limits.max_path_bytes:
            self._headers_too_large = True
            raise ValueError
        if self.parser.get_http_version() == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            raise ValueError  # a proxy may see another end of the body (RFC 9112, section 6.1)
        super().on_headers_complete()
        self.headers = []  # those of a trailer are not headers of the request (RFC 9110, section 6.5.1)
        self.cycle.transport = cast(asyncio.Transport, _ResponseTransport(self))

    def on_body(self, body: bytes) -> None:
        self._header_bytes = 0
        if self._streams:
            self._start_request_timer()  # the limit is for each part, not for the whole
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._header_bytes = 0
        self._stop_request_timer()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        del msg  # it is always the same
        self._refuse(431 if self._headers_too_large else 400)

    def _start_request_timer(self) -> None:
        self._stop_request_timer()
        self._request_timer = self.loop.call_later(self._limits.client_timeout_s, self._on_request_timeout)

    def _stop_request_timer(self) -> None:
        if self._request_timer:
            self._request_timer.cancel()
            self._request_timer = None

    def _on_request_timeout(self) -> None:
        self._request_timer = None
        if self.flow.read_paused:  # the client waits for this process
            self._start_request_timer()
        elif self._streams:
            self.transport.abort()  # its response has begun
        elif not self.transport.is_closing():
            self._refuse(408)

    def write_response(self, data: bytes) -> None:
        """Write a part of the response to the request."""
        self._written_bytes += len(data)
        self.transport.write(data)

    def _start_reader_timer(self) -> None:
        read_bytes = self._written_bytes - self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(self._limits.client_timeout_s, self._on_reader_timeout, read_bytes)

    def _stop_reader_timer(self) -> None:
        if self._reader_timer:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _on_reader_timeout(self, read_before: int) -> None:
        """Close the connection if the client has read less than it has to since the timer started."""
        limits = self._limits
        read_bytes = self._written_bytes - self.transport.get_write_buffer_size() - read_before
        if self.flow.write_paused and read_bytes < limits.min_read_bytes_per_s * limits.client_timeout_s:
            # A reset: otherwise the kernel keeps what is unsent for as long as the client reads it.
            connection: socket.socket = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        else:
            self._start_reader_timer()

    def _refuse(self, status: int) -> None:
        """Send an error and close the connection; if a request is being processed, close it after its response."""
        self._stop_request_timer()
        if cycle := self._running_cycle:
            if cycle.response_started or not cycle.more_body:
                cycle.keep_alive = False
                self._ignores_input = True
                self.flow.pause_reading()
                return
            cycle.disconnected = True  # the rest of its body is not read
            cycle.message_event.set()
        limits = self._limits
        detail = _DETAILS[status].format(
            max_bytes=limits.max_header_bytes, max_path_bytes=limits.max_path_bytes, timeout_s=limits.client_timeout_s
        )
        response = problem(status, detail, "none")
        response.headers["Connection"] = "close"
        head = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        phrase = HTTPStatus(status).phrase.encode()
        self.transport.write(b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, phrase, head, bytes(response.body)))
        self._discard_and_close()
        log_request("none", "none", "none", status)

    def close_after_response(self) -> None:
        """Close the connection as soon as the response is sent."""
        has_unread = self.flow.read_paused or self.cycle.more_body
        if has_unread and not self.transport.is_closing():
            self._discard_and_close()
        else:
            self.transport.close()

    def _resume_discarding(self) -> None:
        if not (self._running_cycle or self.transport.is_closing()):
            self.flow.resume_reading()

    def _discard_and_close(self) -> None:
        """Discard further input for a moment: closing at once would reset the connection and lose the response."""
        self._stop_request_timer()
        self._ignores_input = True
        self.flow.resume_reading()
        self.transport.write_eof()
        self._request_timer = self.loop.call_later(_DISCARD_S, self.transport.close)


def _context_of(cycle: RequestResponseCycle | None) -> HttpContext | None:
    return cycle.scope["state"].get(STATE_KEY) if cycle else None


class _ResponseTransport:
    """The transport that a request writes its response to: what it writes is counted, and closing it discards unread
    data first."""

    def __init__(self, connection: LimitedHttpProtocol) -> None:
        self.write, self.close = connection.write_response, connection.close_after_response
        self.is_closing = connection.transport.is_closing


_DETAILS = {
    400: "the request is not valid HTTP/1.1",
    408: "the request was not received within {timeout_s:g} s",
    431: "the headers have more than the {max_bytes} bytes allowed, or the path more than {max_path_bytes}",
    503: "there are more connections than allowed",
}
