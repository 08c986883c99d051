"""What adapters of servers share: where one is, how long it is waited for, how much it is given at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from adapters.errors import AdapterError, BadResponse, Rejected, TimedOut, Unavailable
from fusion import DocId, Facts, Ranking

T = TypeVar("T")

VECTOR = {"qdrant+grpc": 6334, "qdrant+grpcs": 6334, "qdrant+http": 6333, "qdrant+https": 6333}
GRAPH = {"bolt": 7687, "bolt+s": 7687, "bolt+ssc": 7687}
KEYWORD = {"opensearch+http": 9200, "opensearch+https": 9200}
"""Schemes of the addresses of each source's servers, with the port where an address has none."""

_FORM = "write scheme://host:port, with user:password@ (percent-encoded) before the host where needed"

_MAY_PASS = frozenset({401, 403, 404, 408, 429})
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
async def call(server: str, seconds: float, ours: Callable[[Exception], AdapterError | None]) -> AsyncIterator[None]:
    """Around a driver's call: our own time limit, whatever its own limits are, and its errors as ours.

    :param ours: what an error of the driver means; ``None`` if it is none of the driver's, and a defect of ours.
    :raises AdapterError: and nothing else that the driver or the network may raise.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except AdapterError:
        raise
    except TimeoutError as error:
        raise TimedOut(f"{server} did not answer within {seconds:g} s") from error
    except Exception as error:
        meant = ours(error)
        if meant is None and (isinstance(error, OSError) or _hung_up(error)):
            meant = Unavailable(f"{server} cannot be reached: {short(error)}")
        if meant is None:
            raise
        raise meant from error


def _hung_up(error: Exception) -> bool:
    """Whether it is uvloop's word for a connection that was lost just before it was written to."""
    return isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")


def ranking(
    source: str, hits: Iterable[tuple[float, DocId, object]], depth: int | None = None, coverage: float = 0.0
) -> Ranking:
    """A server's hits (score, id, facts as they were stored), in any order, as a source's answer. Ties by id.

    :raises ValueError: if the facts of a document are none, or a document is there twice.
    """
    best = sorted((-score, id_, msgspec.convert(held, Facts | None)) for score, id_, held in hits)[:depth]
    facts = {id_: held for _, id_, held in best if held is not None}
    return Ranking(source, tuple(id_ for _, id_, _ in best), tuple(-score for score, *_ in best), coverage, facts)


def of_status(status: int, told: str) -> AdapterError:
    """What an HTTP status other than success means: try later, never try that again, or nothing that makes sense."""
    if status in _MAY_PASS or status >= 500:
        return Unavailable(told)
    return (Rejected if 400 <= status < 500 else BadResponse)(told)


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """``items`` in order, ``size`` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def short(error: BaseException) -> str:
    """An error of a driver in a line: some carry whole answers."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]} …"
