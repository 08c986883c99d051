"""HTTP as uvicorn reads it, with bounds of ours: a head is small, a request comes soon, who hangs up gets no work."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from orchestrator.api.endpoint import GONE, TASK, log
from orchestrator.api.problems import respond

_LINGER_S = 1.0


class Bounded(HttpToolsProtocol):
    """Refuses a head, or what may follow a body, of too many bytes, what does not come in its time, and connections
    beyond so many; by the settings of the application.
    """

    _around = 0
    """Bytes since a head began, or since the last piece of a body: what the parser keeps to itself counts, too."""
    _too_large = False
    """Its head was."""
    _deaf = False
    """It was refused, and is about to be closed."""
    _timer: asyncio.TimerHandle | None = None
    """Runs while a request is awaited, and until all of it has come."""

    def __init__(self, config: Config, *rest: Any, **others: Any) -> None:
        super().__init__(config, *rest, **others)
        settings = config.loaded_app.state.settings
        self._most: int = settings.max_header_bytes
        self._patience_s: float = settings.receive_timeout_ms / 1_000
        self._places: int = settings.max_connections

    @property
    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > self._places:
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come()
        if self._at_work and (task := self.cycle.scope["state"].get(TASK)):
            self.cycle.scope["state"][GONE] = True
            task.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if len(data) <= self._most:
            self._take(data)
            return
        for start in range(0, len(data), self._most):  # so that one piece is no more than may be kept
            self._take(data[start : start + self._most])

    def _take(self, data: bytes) -> None:
        if self._deaf or self.transport.is_closing():
            return
        self._around += len(data)
        super().data_received(data)
        if self._around > self._most and not (self._deaf or self.transport.is_closing()):
            self._refuse(431)
        elif not (self._timer or self._at_work or self._deaf):
            self._await_request()  # blank lines between two requests: uvicorn awaits nothing any more

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._around = 0
        self._await_request()

    def on_headers_complete(self) -> None:
        self._around = 0
        if len(self.url) + sum([len(name) + len(value) for name, value in self.headers]) > self._most:
            self._too_large = True
            raise ValueError  # which the parser tells as an error like any other
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._around = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._around = 0
        self._has_come()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        del msg  # it is always the same
        self._refuse(431 if self._too_large else 400)

    def _await_request(self) -> None:
        self._has_come()
        self._timer = self.loop.call_later(self._patience_s, self._give_up)

    def _has_come(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Answer what never becomes a request, and hang up; if a request is being worked on, its answer is the last."""
        self._has_come()
        if self._at_work:
            if self.cycle.response_started or not self.cycle.more_body:
                self.cycle.keep_alive = False
                self.flow.pause_reading()
                return
            self.cycle.disconnected = True  # the rest of its body cannot come any more: nobody waits for it
            self.cycle.message_event.set()
        response = respond(status, _WHY[status].format(most=self._most, patience=self._patience_s), "none")
        response.headers["Connection"] = "close"
        head = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        self.transport.write(b"HTTP/1.1 %d \r\n%s\r\n%s" % (status, head, bytes(response.body)))
        # What still comes is thrown away for a moment: closing over it would reset the connection, answer and all.
        self._deaf = True
        self.transport.write_eof()
        self._timer = self.loop.call_later(_LINGER_S, self.transport.close)
        log("none", "none", "none", status)


_WHY = {
    400: "this is not HTTP/1.1",
    408: "the request did not come within {patience:g} s",
    431: "the headers have more than the {most} bytes allowed",
    503: "there are more connections than are allowed",
}
