"""Connections to a graph server with a maximum size of responses.

An endless response would fill the memory of the process before it times out, and the driver has no setting for a limit.
On uvloop, a write to a closed connection raises an error that the driver does not expect. The driver does not close a
connection whose opening is cancelled. So the driver's class of connections is replaced. It is private to the driver:
``pyproject.toml`` excludes releases that this file was not tested with, and
``tests/adapters/servers/test_lying_servers.py`` tests the limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from neo4j._async.io._bolt import _base
from neo4j._async.io._bolt._bolt_socket import AsyncBoltSocket

from adapters.servers.server import is_closed_connection


@dataclass(slots=True)
class _Allowance:
    max_bytes: int
    received: int = 0


_MAX_BYTES = 67_108_864
"""Maximum size of responses that belong to no statement: of the handshake, and of the ends of transactions."""
_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def limited_response(max_bytes: int) -> Iterator[None]:
    """A context in which a connection that receives more fails, and the driver treats it as broken."""
    token = _allowance.set(_Allowance(max_bytes))
    try:
        yield
    finally:
        _allowance.reset(token)


class BoundedSocket(AsyncBoltSocket):
    """A connection that counts the bytes it receives: for the running statement, or since the last message."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._since_message = _Allowance(_MAX_BYTES)

    @classmethod
    async def _connect_secure(cls, *arguments: Any, **options: Any) -> Any:
        """Open a connection. If that is cancelled, it is closed as soon as it is open."""
        opening = asyncio.ensure_future(super()._connect_secure(*arguments, **options))
        try:
            await asyncio.wait({opening})
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise
        return opening.result()

    async def sendall(self, data: bytes) -> None:
        """Send a message.

        :raises OSError: if the connection is closed. Only on this error does the driver close its idle connections:
            if these have been reset as well, each of them would fail a search.
        """
        self._since_message.received = 0
        try:
            await super().sendall(data)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            if is_closed_connection(error):
                raise ConnectionResetError(str(error)) from error
            raise

    async def recv_into(self, buffer: Any, nbytes: int) -> int:
        """Receive at most ``nbytes`` bytes.

        :raises OSError: if the limit is exceeded.
        """
        received: int = await super().recv_into(buffer, nbytes)  # type: ignore[no-untyped-call]
        _count(_allowance.get() or self._since_message, received)
        return received

    async def recv(self, n: int) -> bytes:
        """Receive at most ``n`` bytes of the handshake.

        :raises OSError: if the limit is exceeded.
        """
        content: bytes = await super().recv(n)  # type: ignore[no-untyped-call]
        _count(self._since_message, len(content))
        return content


def _close(opening: asyncio.Future[BoundedSocket]) -> None:
    if not opening.cancelled() and not opening.exception():
        opening.result().close()


def _count(allowance: _Allowance, received: int) -> None:
    allowance.received += received
    if allowance.received > allowance.max_bytes:
        raise OSError(f"a response of more than {allowance.max_bytes} bytes")


_base.AsyncBoltSocket = BoundedSocket  # type: ignore[attr-defined, assignment]
