"""Many searches in parts: each is sent as a whole before its response is read, so that neither waits for the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from orchestrator.client.calls import Call, PartialResponse, search_fields
from orchestrator.client.errors import BadReply, Refused, refusal
from orchestrator.schema.problem import Problem
from orchestrator.schema.search import SearchRequest, SearchResponse

Query: TypeAlias = str | SearchRequest | Mapping[str, Any] | bytes
"""A query, a request, its fields as in ``POST /v1/search``, or these as JSON on one line."""

MAX_LINES, MAX_BYTES = 64, 49_152
"""Of one part: it fits in the buffers of a connection."""
TIMEOUT_S = 90.0
"""Of one part by default: the service lets a line wait for a minute if it is busy."""
PATH = "/v1/search/batch"


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of one search of a batch.

    :param number: of the search, from 1.
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


@dataclass(slots=True)
class Part:
    """Lines that are sent together.

    :param first: number of the first one.
    :param done: how many of them have an outcome.
    """

    first: int
    lines: Sequence[tuple[bytes, bool]]
    done: int = 0

    @property
    def is_done(self) -> bool:
        """Whether every line has an outcome."""
        return self.done == len(self.lines)

    def call(self) -> Call[Any]:
        """The request for the lines that have no outcome yet."""
        return Call("POST", PATH, object, content=b"\n".join(line for line, _ in self.lines[self.done :]))

    def outcome(self, content: bytes) -> BatchOutcome:
        """The outcome of the next line.

        :raises BadReply: if it is not one of this API.
        """
        _, is_partial = self.lines[self.done]
        kind = PartialResponse if is_partial else SearchResponse
        try:
            line = msgspec.json.decode(content, type=_Line)
            response = msgspec.json.decode(line.response, type=kind) if bytes(line.response) else None
        except msgspec.DecodeError as error:
            raise BadReply(f"POST {PATH}: not a response of Trivium: {error}") from error
        number = self.first + self.done
        self.done += 1
        return BatchOutcome(number, response, None if line.problem is None else refusal(line.problem, None))


def parts(queries: Iterable[Query]) -> Iterator[Part]:
    """The queries in parts. A line that is larger than a part is one alone."""
    lines: list[tuple[bytes, bool]] = []
    size = first = 0
    for query in queries:
        line = _encoded(query)
        if lines and (len(lines) == MAX_LINES or size + len(line[0]) > MAX_BYTES):
            yield Part(first + 1, lines)
            first, size, lines = first + len(lines), 0, []
        lines.append(line)
        size += len(line[0]) + 1
    if lines:
        yield Part(first + 1, lines)


def _encoded(query: Query) -> tuple[bytes, bool]:
    """A line, and whether it names the fields of its hits."""
    if isinstance(query, bytes):
        return query.replace(b"\n", b" "), b'"fields"' in query
    fields = search_fields(query, {}) if isinstance(query, str | SearchRequest) else query
    return msgspec.json.encode(fields), fields.get("fields") is not None


class LineSplitter:
    """Lines of a text that comes in parts."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, part: bytes) -> list[bytes]:
        """The lines that are complete now."""
        *lines, rest = (self._rest + part).split(b"\n")
        self._rest = bytearray(rest)
        return [bytes(line) for line in lines]
