"""What each method sends and how its response is read. Nothing is sent here, so that both clients share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from adapters.model.document import Document
from adapters.model.feedback import FeedbackKind
from adapters.model.protection import check_name
from orchestrator.client.errors import BadReply, DeadlineExceeded, TriviumError, Unreachable, refusal
from orchestrator.client.packages import httpx2
from orchestrator.client.retries import RetryBudget
from orchestrator.schema.arrays import ENCODER
from orchestrator.schema.documents import (
    BulkResponse,
    CollectionsResponse,
    DeleteManyResponse,
    DeleteResponse,
    DocumentsResponse,
    NeighborsResponse,
)
from orchestrator.schema.feedback import FeedbackResponse
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.problem import Problem
from orchestrator.schema.search import SearchRequest, SearchResponse

T = TypeVar("T")

_PartialHit = msgspec.defstruct(
    "SearchHit", [(each.name, each.type, msgspec.UNSET) for each in msgspec.structs.fields(SearchHit)], frozen=True
)
PartialResponse: type[SearchResponse] = msgspec.defstruct(  # type: ignore[assignment]  # the same but for its hits
    "SearchResponse",
    [("hits", tuple[_PartialHit, ...], ())],  # type: ignore[valid-type]
    bases=(SearchResponse,),
    frozen=True,
    kw_only=True,
)
"""A response whose hits have some fields only, because the request names them; the others are ``UNSET``."""
_DOCUMENTS_PER_PAGE = "1000"
_NDJSON = "application/x-ndjson"
_MAX_TIMEOUT_MS = 60_000
_MARGIN = 0.9
"""Fraction of the remaining time that a search may take in the service: the rest is for the network."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request.

    :param kind: type of the response.
    :param has_deadline: whether the body has the field ``timeout_ms``.
    """

    method: str
    path: str
    kind: type[T]
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] | None = None
    content: bytes | None = None
    has_deadline: bool = False

    def body(self, remaining_s: float) -> bytes | None:
        """The body of an attempt that has some seconds left; a search learns how many."""
        if self.fields is None:
            return self.content
        fields = dict(self.fields)
        if self.has_deadline and fields.get("timeout_ms") is None:
            fields["timeout_ms"] = max(1, min(_MAX_TIMEOUT_MS, int(remaining_s * 1_000 * _MARGIN)))
        return ENCODER.encode(fields)

    @property
    def media_type(self) -> str | None:
        """Of the body; ``None`` without one."""
        if self.fields is not None:
            return "application/json"
        return None if self.content is None else _NDJSON

    def options(self, remaining_s: float) -> dict[str, Any]:
        """The arguments of a request of the HTTP client."""
        return {
            "method": self.method,
            "url": self.path,
            "params": self.parameters,
            "content": self.body(remaining_s),
            "headers": {"content-type": self.media_type} if self.media_type else {},
            "timeout": remaining_s,
        }

    def response(self, status: int, retry_after: str | None, content: bytes) -> T:
        """The response.

        :raises Refused: if the service answered with a problem.
        :raises BadReply: if it is none of this API.
        """
        if status >= HTTPStatus.BAD_REQUEST:
            try:
                problem = msgspec.json.decode(content, type=Problem)
            except msgspec.DecodeError:  # of a proxy before the service
                problem = Problem(title="", status=status, detail=f"status {status}: {content[:200]!r}")
            raise refusal(problem, float(retry_after) if retry_after and retry_after.isdigit() else None)
        try:
            return msgspec.json.decode(content, type=self.kind)
        except msgspec.DecodeError as error:
            raise BadReply(f"{self.method} {self.path}: not a response of Trivium: {error}") from error


class Attempts:
    """The attempts of one call, within its time limit."""

    def __init__(self, call: Call[Any], url: str, timeout_s: float, budget: RetryBudget) -> None:
        if not timeout_s > 0:
            raise ValueError(f"timeout_s is {timeout_s}, allowed are numbers above 0")
        self._name = f"{url}: {call.method} {call.path}"
        self._url = url
        self._timeout_s = timeout_s
        self._expires_at = monotonic() + timeout_s
        self._budget = budget
        self._number = 0
        budget.begin()

    def begin_s(self) -> float:
        """Begin an attempt: the seconds that it has.

        :raises DeadlineExceeded: if none are left.
        """
        self._number += 1
        return self.remaining_s()

    def remaining_s(self) -> float:
        """Seconds until the deadline.

        :raises DeadlineExceeded: if none are left.
        """
        remaining_s = self._expires_at - monotonic()
        if remaining_s <= 0:
            raise self._late()
        return remaining_s

    def require_all(self, is_done: bool) -> None:
        """Check the end of a response.

        :raises Unreachable: if a part of it is missing.
        """
        if not is_done:
            raise Unreachable(f"{self._name}: the response ended before its last line")

    def _late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"{self._name}: no response within {self._timeout_s:g} s")

    def delay_s(self, error: TriviumError) -> float:
        """Seconds to wait after an attempt that failed.

        :raises TriviumError: this error, if there is to be no further attempt.
        """
        delay_s = self._budget.delay_s(error, self._number, self._expires_at - monotonic())
        if delay_s is None:
            raise error
        return delay_s

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of connections into those of a client."""
        try:
            yield
        except (httpx2.TimeoutException, TimeoutError):
            raise self._late() from None
        except httpx2.DecodingError as error:
            raise BadReply(f"{self._name}: the body cannot be decoded: {error}") from error
        except httpx2.TransportError as error:
            raise Unreachable(f"{self._url} cannot be reached: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """Why a connection failed, in the words of the operating system where these are known."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def connection_options(
    url: str, key: str | None, connections: int, user: str | None = None, teams: Sequence[str] | None = None
) -> dict[str, Any]:
    """The options of an HTTP client.

    :raises ValueError: if the URL is none of a service, or as :func:`caller_headers`.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"url is {url!r}, allowed is the address of a service such as http://127.0.0.1:8080")
    return {
        "base_url": url.rstrip("/"),
        "headers": caller_headers(key, user, teams),
        "limits": httpx2.Limits(max_connections=connections),
        "follow_redirects": False,
    }


def caller_headers(key: str | None, user: str | None, teams: Sequence[str] | None) -> dict[bytes, bytes]:
    """The headers that say who sends a request, and on whose behalf.

    :raises ValueError: if the name of the user or of a team is not allowed, or there are neither a user nor teams
        although teams are given.
    """
    headers = {b"authorization": f"Bearer {key}".encode()} if key else {}
    if user is not None:
        headers[b"x-trivium-user"] = check_name("user", user).encode()
    if teams is not None:
        if isinstance(teams, str) or not (teams or user):
            raise ValueError(f"teams: {teams!r}, allowed is a list of names; without a user it has at least one")
        if teams:
            headers[b"x-trivium-teams"] = ",".join(check_name("teams", team) for team in teams).encode()
    return headers


def search(query: str | SearchRequest, fields: Mapping[str, Any]) -> Call[SearchResponse]:
    """``POST /v1/search``.

    :param fields: of the request; with a :class:`SearchRequest` they replace its own.
    """
    sent = search_fields(query, fields)
    kind = PartialResponse if has_partial_hits(sent) else SearchResponse
    return Call("POST", "/v1/search", kind, fields=sent, has_deadline=True)


def has_partial_hits(sent: Mapping[str, Any]) -> bool:
    """Whether the response to a search with these fields has hits that lack some."""
    return sent.get("fields") is not None or sent.get("format") == "context"


def search_fields(query: str | SearchRequest, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a search."""
    given = _given(query) if isinstance(query, SearchRequest) else {"query": query}
    return {**given, **fields}


def index(content: bytes, chunk: bool, replace_chunks: bool) -> Call[BulkResponse]:
    """``POST /v1/documents`` of lines of NDJSON."""
    parameters = {"chunk": "true"} if chunk else {}
    parameters |= {"replace": "children"} if replace_chunks else {}
    return Call("POST", "/v1/documents", BulkResponse, parameters, content=content)


def get(id_: str, collection: str | None) -> Call[Document]:
    """``GET /v1/documents/{id}``."""
    return Call("GET", f"/v1/documents/{quote(id_, safe='')}", Document, _collection(collection))


def neighbors(id_: str, collection: str | None, limit: int | None) -> Call[NeighborsResponse]:
    """``GET /v1/documents/{id}/neighbors``."""
    parameters = {**_collection(collection), **({} if limit is None else {"limit": str(limit)})}
    return Call("GET", f"/v1/documents/{quote(id_, safe='')}/neighbors", NeighborsResponse, parameters)


def feedback(
    query_id: str, id_: str, kind: FeedbackKind, collection: str | None, position: int | None
) -> Call[FeedbackResponse]:
    """``POST /v1/feedback``."""
    fields: dict[str, Any] = {"query_id": query_id, "id": id_, "kind": kind, **_collection(collection)}
    return Call(
        "POST", "/v1/feedback", FeedbackResponse, fields=fields | ({} if position is None else {"position": position})
    )


def page(collection: str | None, condition: Mapping[str, Any] | None, cursor: str | None) -> Call[DocumentsResponse]:
    """``GET /v1/documents``."""
    parameters = {**_collection(collection), "limit": _DOCUMENTS_PER_PAGE}
    if condition is not None:
        parameters["filter"] = msgspec.json.encode(condition).decode()
    if cursor is not None:
        parameters["cursor"] = cursor
    return Call("GET", "/v1/documents", DocumentsResponse, parameters)


def delete(id_: str, collection: str | None, with_chunks: bool) -> Call[DeleteResponse]:
    """``DELETE /v1/documents/{id}``."""
    parameters = {**_collection(collection), **({} if with_chunks else {"children": "false"})}
    return Call("DELETE", f"/v1/documents/{quote(id_, safe='')}", DeleteResponse, parameters)


def delete_many(condition: Mapping[str, Any], dry_run: bool) -> Call[DeleteManyResponse]:
    """``DELETE /v1/documents``."""
    parameters = {"dry_run": "true"} if dry_run else {}
    return Call("DELETE", "/v1/documents", DeleteManyResponse, parameters, fields={"filter": condition})


def collections() -> Call[CollectionsResponse]:
    """``GET /v1/collections``."""
    return Call("GET", "/v1/collections", CollectionsResponse)


def _collection(name: str | None) -> dict[str, str]:
    return {} if name is None else {"collection": name}


def _given(request: SearchRequest) -> dict[str, Any]:
    """The fields of a request that differ from the defaults."""
    empty = SearchRequest(query=request.query)
    values = msgspec.structs.asdict(request)
    return {name: value for name, value in values.items() if name == "query" or value != getattr(empty, name)}
