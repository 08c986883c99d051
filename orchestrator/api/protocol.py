"""HTTP as uvicorn reads it, with bounds of ours: a head is small, a request comes soon, an answer is read, who hangs up
gets no work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from orchestrator.api.endpoint import GONE, TASK, log
from orchestrator.api.problems import respond

_LINGER_S = 1.0


class Bounded(HttpToolsProtocol):
    """Refuses a head, or what may follow a body, of too many bytes, what does not come in its time, answers that nobody
    reads, and connections beyond so many; by the settings of the application.
    """

    _around = 0
    """Bytes since a head began, or since the last piece of a body: what the parser keeps to itself counts, too."""
    _too_large = False
    """Its head was."""
    _deaf = False
    """It was refused, and is about to be closed."""
    _timer: asyncio.TimerHandle | None = None
    """Runs while a request is awaited, and until all of it has come, but not while we do not read."""
    _left_s = 0.0
    """Of its time, where it stands still."""
    _unread: asyncio.TimerHandle | None = None
    """Runs while the caller does not read."""
    _served: RequestResponseCycle | None = None
    """The request that was begun last; uvicorn's ``cycle`` may be one that waits behind it."""

    def __init__(self, config: Config, *rest: Any, **others: Any) -> None:
        super().__init__(config, *rest, **others)
        settings = config.loaded_app.state.settings
        self._most: int = settings.max_header_bytes
        self._patience_s: float = settings.receive_timeout_ms / 1_000
        self._places: int = settings.max_connections

    @property
    def _at_work(self) -> RequestResponseCycle | None:
        """The request that is being worked on."""
        return self._served if self._served and not self._served.response_complete else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self._pause, self._go_on)
        self._await_request()
        if len(self.connections) > self._places:
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come()
        self._is_read()
        if cycle := self._at_work:
            _forsake(cycle)
            if task := cycle.scope["state"].get(TASK):
                cycle.scope["state"][GONE] = True
                task.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._is_read()
        super().resume_writing()

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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._served = cycle
        cycle.transport = cast(asyncio.Transport, _Link(self.transport, self._hang_up))
        super()._start_asgi_task(cycle, app)

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

    def _pause(self) -> None:
        if self._timer and not self._deaf:
            self._left_s = self._timer.when() - self.loop.time()
            self._timer.cancel()

    def _go_on(self) -> None:
        if self._timer and self._timer.cancelled():
            self._timer = self.loop.call_later(self._left_s, self._give_up)

    def _await_reader(self, unsent: int) -> None:
        self._is_read()
        self._unread = self.loop.call_later(self._patience_s, self._look_again, unsent)

    def _is_read(self) -> None:
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def _look_again(self, before: int) -> None:
        """Whoever has read nothing for that long does not get the rest."""
        unsent = self.transport.get_write_buffer_size()
        if unsent < before:
            self._await_reader(unsent)
        else:
            self.transport.abort()

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Answer what never becomes a request, and hang up; if a request is being worked on, its answer is the last."""
        self._has_come()
        if cycle := self._at_work:
            if cycle is not self.cycle or cycle.response_started or not cycle.more_body:
                cycle.keep_alive = False
                self.pipeline.clear()
                self.flow.pause_reading()
                return
            _forsake(cycle)  # the rest of its body cannot come any more
        response = respond(status, _WHY[status].format(most=self._most, patience=self._patience_s), "none")
        response.headers["Connection"] = "close"
        head = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        self.transport.write(b"HTTP/1.1 %d \r\n%s\r\n%s" % (status, head, bytes(response.body)))
        self._linger()
        log("none", "none", "none", status)

    def _hang_up(self) -> None:
        """What is answered is answered."""
        self.pipeline.clear()
        unread = self.flow.read_paused or (self._served is not None and self._served.more_body)
        if unread and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Throw away for a moment what still comes: closing over it would reset the connection, answer and all."""
        self._has_come()
        self._deaf = True
        self.flow.resume_reading()
        self.transport.write_eof()
        self._timer = self.loop.call_later(_LINGER_S, self.transport.close)


def _forsake(cycle: RequestResponseCycle) -> None:
    """Nobody waits for its body, and nobody reads its answer."""
    cycle.disconnected = True
    cycle.message_event.set()


class _Flow(FlowControl):
    """uvicorn's, which tells when it stops reading, and when it goes on."""

    def __init__(self, transport: asyncio.Transport, paused: Callable[[], None], resumed: Callable[[], None]) -> None:
        super().__init__(transport)
        self._paused, self._resumed = paused, resumed

    def pause_reading(self) -> None:
        if not self.read_paused:
            super().pause_reading()
            self._paused()

    def resume_reading(self) -> None:
        if self.read_paused:
            super().resume_reading()
            self._resumed()


class _Link:
    """What a request writes its answer to: uvicorn closes it once it is answered, and we know better how."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, close


_WHY = {
    400: "this is not HTTP/1.1",
    408: "the request did not come within {patience:g} s",
    431: "the headers have more than the {most} bytes allowed",
    503: "there are more connections than are allowed",
}
