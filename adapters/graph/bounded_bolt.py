"""Connections to a graph server: what the driver's own lack.

An answer without end would fill the memory of the process before its time is up, and the driver has no setting for a
limit. On uvloop, a write to a closed connection raises an error that the driver does not expect. So the driver's class
of connections is replaced. It is private to the driver: ``pyproject.toml`` excludes releases that this file was not
tested with, and ``tests/adapters/servers/test_lying_servers.py`` tests the limit.
"""

from __future__ import annotations

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
"""Of what no statement waits for: the introduction of a server, and the ends of transactions."""
_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def limited_response(max_bytes: int) -> Iterator[None]:
    """Inside, connections that have received more fail: the driver takes them for broken."""
    token = _allowance.set(_Allowance(max_bytes))
    try:
        yield
    finally:
        _allowance.reset(token)


class BoundedSocket(AsyncBoltSocket):
    """A connection that counts what it receives: for the statement that runs, or since the newest message."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._since_message = _Allowance(_MAX_BYTES)

    async def sendall(self, data: bytes) -> None:
        """Send a message.

        :raises OSError: if the connection is closed. On any other error the driver keeps its idle connections: if all
            had been reset, each of them failed a search.
        """
        self._since_message.received = 0
        try:
            await super().sendall(data)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            if is_closed_connection(error):
                raise ConnectionResetError(str(error)) from error
            raise

    async def recv_into(self, buffer: Any, nbytes: int) -> int:
        """As much as has arrived, ``nbytes`` at most.

        :raises OSError: if it is more than is allowed.
        """
        received: int = await super().recv_into(buffer, nbytes)  # type: ignore[no-untyped-call]
        _count(_allowance.get() or self._since_message, received)
        return received

    async def recv(self, n: int) -> bytes:
        """The same for the handshake.

        :raises OSError: likewise.
        """
        content: bytes = await super().recv(n)  # type: ignore[no-untyped-call]
        _count(self._since_message, len(content))
        return content


def _count(allowance: _Allowance, received: int) -> None:
    allowance.received += received
    if allowance.received > allowance.max_bytes:
        raise OSError(f"a response of more than {allowance.max_bytes} bytes")


_base.AsyncBoltSocket = BoundedSocket  # type: ignore[attr-defined, assignment]
