"""What adapters of servers share: where one is, how long it is waited for, how much it is given at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from adapters.errors import TimedOut

T = TypeVar("T")

VECTOR = {"qdrant+grpc": 6334, "qdrant+grpcs": 6334, "qdrant+http": 6333, "qdrant+https": 6333}
GRAPH = {"bolt": 7687, "bolt+s": 7687, "bolt+ssc": 7687}
KEYWORD = {"opensearch+http": 9200, "opensearch+https": 9200}
"""Schemes of the addresses of each source's servers, with the port where an address has none."""

_FORM = "write scheme://host:port, with user:password@ (percent-encoded) before the host where needed"

REFUSED = frozenset({401, 403, 404, 408, 429})
"""Statuses that say nothing against what was asked: another time, or with other credentials, it may go through."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, from a URL ``scheme://[user[:password]@]host[:port]``. It never shows the password.

    :raises ValueError: if the URL has another scheme than those allowed, no host, or anything after the port.
    """

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str, ports: dict[str, int]) -> Address:
        """Read ``url``; ``ports`` are the allowed schemes, each with the port where the URL has none."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError(f"not an address: {_FORM}") from None  # what cannot be read may be a password
        if parts.scheme not in ports:
            raise ValueError(f"its scheme must be one of {', '.join(f'{each}://' for each in ports)}")
        if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"not an address: {_FORM}")
        return cls(
            parts.scheme,
            parts.hostname,
            port or ports[parts.scheme],
            unquote(parts.username or ""),
            unquote(parts.password or ""),
        )

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a server has for a search and for a write of one batch; connections at most to one server."""

    read_s: float = 1.0
    write_s: float = 30.0
    connections: int = 32


@asynccontextmanager
async def deadline(server: str, seconds: float) -> AsyncIterator[None]:
    """Our own time limit around a driver's call, whatever its own limits are.

    :raises TimedOut: when it is over.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TimedOut(f"{server} did not answer within {seconds:g} s") from error


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """``items`` in order, ``size`` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def short(error: BaseException) -> str:
    """An error of a driver in a line: some carry whole answers."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]} …"
