"""The common parts of all adapters of servers: addresses, limits, translation of errors, rankings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from adapters.model.errors import AdapterError, BadResponse, ExecutionFailed, Rejected, TimedOut, Unavailable
from fusion.columns import Ranking
from fusion.values import DocId, DocumentFields

VECTOR_SCHEMES = {"qdrant+grpc": 6334, "qdrant+grpcs": 6334, "qdrant+http": 6333, "qdrant+https": 6333}
GRAPH_SCHEMES = {"bolt": 7687, "bolt+s": 7687, "bolt+ssc": 7687}
KEYWORD_SCHEMES = {"opensearch+http": 9200, "opensearch+https": 9200}
"""The schemes of the addresses of each source's servers, with their default ports."""

Quantization: TypeAlias = Literal["none", "int8"]
"""How vectors are compressed for searching."""

_FORM = "write scheme://host:port, with user:password@ (percent-encoded) before the host where needed"
INTERNAL_SERVER_ERROR = 500
_RETRYABLE_STATUSES = frozenset({401, 403, 404, 408, 429})
"""Statuses below 500 that do not mean that the request is wrong: it may succeed later, or with other credentials."""
_MAX_ERROR_CHARS = 300
_KIND = re.compile(r"[a-z_]{1,80}_exception|(Neo|Memgraph)(\.[A-Za-z]{1,60}){1,4}")


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a new index is divided over the nodes of a cluster.

    :param shards: parts of the index, each on one node; their number is fixed when the index is created.
    :param copies: of each shard, each on another node; ``None`` for the default of the server.
    """

    shards: int = 1
    copies: int | None = None


UNDIVIDED = Partitioning()
SHARDS_ARE_FIXED = "the number of shards of an index is fixed: `trivium backfill` builds another one beside it"
"""What to do if an index has another number of shards."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server: ``scheme://[user[:password]@]host[:port]``. Its text form never contains the password.

    :raises ValueError: if the scheme is not allowed, the host is missing, or anything follows the port.
    """

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str, default_ports: dict[str, int]) -> Address:
        """Parse ``url``.

        :param default_ports: the allowed schemes, each with the port of a URL that names none.
        """
        try:
            parsed = urlsplit(url)
            port = parsed.port
        except ValueError:
            raise ValueError(f"not an address: {_FORM}") from None  # the text that cannot be parsed may be a password
        if parsed.scheme not in default_ports:
            raise ValueError(f"its scheme must be one of {', '.join(f'{each}://' for each in default_ports)}")
        if not parsed.hostname or parsed.path.strip("/") or parsed.query or parsed.fragment:
            raise ValueError(f"not an address: {_FORM}")
        return cls(
            parsed.scheme,
            parsed.hostname,
            port or default_ports[parsed.scheme],
            unquote(parsed.username or ""),
            unquote(parsed.password or ""),
        )

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the use of one server.

    :param read_timeout_s: of one search, in seconds.
    :param write_timeout_s: of one batch of a write, in seconds.
    """

    read_timeout_s: float = 1.0
    write_timeout_s: float = 30.0
    max_connections: int = 32


@asynccontextmanager
async def translated_errors(
    server: str, call_timeout_s: float, translate: Callable[[Exception], AdapterError | None]
) -> AsyncIterator[None]:
    """Run a driver's call with a time limit, whatever limits the driver has, and translate its errors.

    :param server: its name in error messages.
    :param translate: returns the adapter error for a driver's error; ``None`` for any other exception, which is a
        defect of this code and is raised unchanged.
    :raises AdapterError: and nothing else that the driver or the network may raise.
    """
    try:
        async with asyncio.timeout(call_timeout_s):
            yield
    except AdapterError:
        raise
    except TimeoutError as error:
        raise TimedOut(f"{server} timed out after {call_timeout_s:g} s") from error
    except Exception as error:
        translated = translate(error)
        if translated is None and (isinstance(error, OSError) or is_closed_connection(error)):
            translated = unreachable(server, error)
        if translated is None:
            raise
        raise translated from error


def is_closed_connection(error: Exception) -> bool:
    """Whether uvloop raised this because the connection was closed just before a write."""
    return isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")


def server_ranking(
    source: str,
    hits: Iterable[tuple[float, DocId, DocumentFields | None]],
    depth: int | None = None,
    entity_coverage: float = 0.0,
) -> Ranking:
    """The ranking of a server's hits, best first. Ties by id.

    :param hits: score, id, and rank fields, in any order.
    :param depth: maximum number of documents; unlimited if ``None``.
    :raises ValueError: if a document occurs twice, a score is not a finite number, or an id is not a text.
    """
    best = sorted(hits, key=_by_score_and_id)[:depth]
    if not all(isfinite(score) and isinstance(id_, str) for score, id_, _ in best):
        raise ValueError("a hit without a finite score or without an id")
    fields = {id_: known for _, id_, known in best if known is not None}
    return Ranking.of_ids(source, [id_ for _, id_, _ in best], [score for score, *_ in best], entity_coverage, fields)


def _by_score_and_id(hit: tuple[float, DocId, object]) -> tuple[float, DocId]:
    return -hit[0], hit[1]


def unreachable(server: str, error: BaseException) -> Unavailable:
    """The error for a server that cannot be reached."""
    return Unavailable(f"{server} cannot be reached", describe_error(error))


def unreadable(response: str, error: BaseException) -> BadResponse:
    """The error for an invalid response. It contains no text of the response.

    :param response: what it is, such as ``opensearch's response to a search``.
    """
    _, _, path = str(error).rpartition(" - at ") if isinstance(error, msgspec.ValidationError) else ("", "", "")
    return BadResponse(f"{response} cannot be understood", f"{type(error).__name__} {path}".rstrip())


def named_kind(text: object) -> str:
    """The text if it is the name of a kind of error of OpenSearch or a graph server; otherwise an empty text."""
    return text if isinstance(text, str) and _KIND.fullmatch(text) else ""


def error_of_status(status: int, message: str, detail: str = "") -> AdapterError:
    """The error for an HTTP status other than success.

    :returns: :class:`Unavailable` if the same request may succeed later, :class:`Rejected` if it never will,
        :class:`BadResponse` for any other status.
    """
    if status == INTERNAL_SERVER_ERROR:
        return ExecutionFailed(message, detail)
    if status in _RETRYABLE_STATUSES or status >= 500:
        return Unavailable(message, detail)
    return (Rejected if 400 <= status < 500 else BadResponse)(message, detail)


def describe_error(error: BaseException) -> str:
    """An error of a driver or the system, about a connection or a file, in one line of at most 300 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _MAX_ERROR_CHARS else f"{text[:_MAX_ERROR_CHARS]} …"
