"""HTTP as uvicorn reads it, with bounds of ours: a head is small, and comes soon; who hangs up is not worked for."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from orchestrator.api.endpoint import GONE, TASK
from orchestrator.api.problems import respond


class _TooLarge(Exception):
    """The head has more bytes than are allowed."""


class Bounded(HttpToolsProtocol):
    """Refuses a head of too many bytes, and one that does not come, by the settings of the application."""

    _raw = 0
    """Bytes that came of a head that has not ended: what the parser keeps to itself counts, too."""
    _read = 0
    """Bytes that were read of it."""
    _timer: asyncio.TimerHandle | None = None
    """Runs while a head is awaited, from the first connection and the first byte on."""

    def __init__(self, config: Config, *rest: Any, **others: Any) -> None:
        super().__init__(config, *rest, **others)
        settings = config.loaded_app.state.settings
        self._most: int = settings.max_header_bytes
        self._patience_s: float = settings.receive_timeout_ms / 1_000

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        if self.cycle and not self.cycle.response_complete and (task := self.cycle.scope["state"].get(TASK)):
            self.cycle.scope["state"][GONE] = True
            task.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._timer and not self.transport.is_closing():
            self._raw += len(data)
            if self._raw > self._most:
                self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._has_head()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        del msg  # it is always the same
        self._refuse(431 if self._read > self._most else 400)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > self._most:
            raise _TooLarge  # which the parser tells as an error like any other

    def _await_head(self) -> None:
        self._has_head()
        self._raw = self._read = 0
        self._timer = self.loop.call_later(self._patience_s, self._give_up)

    def _has_head(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Answer what never becomes a request, and hang up."""
        self._has_head()
        response = respond(status, _WHY[status].format(most=self._most, patience=self._patience_s), "none")
        response.headers["Connection"] = "close"
        head = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        self.transport.write(b"HTTP/1.1 %d \r\n%s\r\n%s" % (status, head, bytes(response.body)))
        self.transport.close()


_WHY = {
    400: "this is not HTTP/1.1",
    408: "the headers did not come within {patience:g} s",
    431: "the headers have more than the {most} bytes allowed",
}
