"""Many searches in parts: each is sent as a whole before its response is read, so that neither waits for the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from orchestrator.client.calls import Call, PartialResponse, has_partial_hits, search_fields
from orchestrator.client.errors import BadReply, Refused, refusal
from orchestrator.schema.arrays import ENCODER
from orchestrator.schema.problem import Problem
from orchestrator.schema.search import SearchRequest, SearchResponse

Query: TypeAlias = str | SearchRequest | Mapping[str, Any] | bytes
"""A query, a request, its fields as in ``POST /v1/search``, or these as JSON on one line, which has no outcome if it is
blank."""

MAX_LINES, MAX_BYTES = 64, 49_152
"""Of one part: it fits in the buffers of a connection."""
TIMEOUT_S = 90.0
"""Of one part by default: the service lets a line wait for a minute if it is busy."""
PATH = "/v1/search/batch"


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of one search of a batch.

    :param number: of the query, from 1.
    :param error: why there is no response.
    """

    number: int
    response: SearchResponse | None = None
    error: Refused | None = None

    def result(self) -> SearchResponse:
        """The response.

        :raises Refused: if there is none.
        """
        if self.response is None:
            raise self.error or BadReply(f"search {self.number} has neither a response nor a problem")
        return self.response


class _Line(msgspec.Struct, frozen=True):
    line: int
    status: int
    response: msgspec.Raw = msgspec.Raw()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class _Sent:
    """A line that is sent: the number of its query, and whether its hits may have some of their fields only."""

    number: int
    content: bytes
    is_partial: bool


@dataclass(slots=True)
class Part:
    """Lines that are sent together.

    :param done: how many of them have an outcome.
    """

    lines: Sequence[_Sent]
    done: int = 0
    _sent_from: int = 0

    @property
    def is_done(self) -> bool:
        """Whether every line has an outcome."""
        return self.done == len(self.lines)

    def call(self) -> Call[Any]:
        """The request for the lines that have no outcome yet."""
        self._sent_from = self.done
        return Call("POST", PATH, object, content=b"\n".join(line.content for line in self.lines[self.done :]))

    def outcome(self, content: bytes) -> BatchOutcome:
        """The outcome of the next line.

        :raises BadReply: if it is not one of this API, or of another line.
        """
        try:
            line = msgspec.json.decode(content, type=_Line)
            if self.is_done or line.line != self.done - self._sent_from + 1:
                raise BadReply(f"POST {PATH}: the response has a line {line.line} that was not expected")
            sent = self.lines[self.done]
            kind = PartialResponse if sent.is_partial else SearchResponse
            response = msgspec.json.decode(line.response, type=kind) if bytes(line.response) else None
        except msgspec.DecodeError as error:
            raise BadReply(f"POST {PATH}: not a response of Trivium: {error}") from error
        self.done += 1
        return BatchOutcome(sent.number, response, None if line.problem is None else refusal(line.problem, None))


def parts(queries: Iterable[Query]) -> Iterator[Part]:
    """The queries in parts. A line that is larger than a part is one alone; blank ones are not sent."""
    lines: list[_Sent] = []
    size = 0
    for number, query in enumerate(queries, start=1):
        line = _encoded(number, query)
        if not line.content:
            continue
        if lines and (len(lines) == MAX_LINES or size + len(line.content) > MAX_BYTES):
            yield Part(lines)
            size, lines = 0, []
        lines.append(line)
        size += len(line.content) + 1
    if lines:
        yield Part(lines)


def _encoded(number: int, query: Query) -> _Sent:
    if isinstance(query, bytes):
        return _Sent(number, query.replace(b"\n", b" ").strip(), is_partial=True)
    fields = search_fields(query, {}) if isinstance(query, str | SearchRequest) else query
    return _Sent(number, ENCODER.encode(fields), is_partial=has_partial_hits(fields))


class LineSplitter:
    """Lines of a text that comes in parts."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, part: bytes) -> list[bytes]:
        """The lines that are complete now."""
        *lines, rest = (self._rest + part).split(b"\n")
        self._rest = bytearray(rest)
        return [bytes(line) for line in lines]
