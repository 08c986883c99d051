"""Documents in requests of a limited size, and the outcomes of all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from adapters.model.document import Document
from orchestrator.schema.arrays import ENCODER
from orchestrator.schema.documents import BulkResponse, LineOutcome

Input: TypeAlias = Document | Mapping[str, Any]
"""A document, or its fields as in ``POST /v1/documents``."""

MAX_LINES, MAX_BYTES = 1_000, 8_388_608
"""Of one request: the service lists the outcomes of at most a thousand rejected lines."""


@dataclass(slots=True)
class IndexOutcome:
    """The outcome of writing documents, in any number of requests.

    :param generation: of the last write: a search with this ``min_generation`` shows all of them.
    :param lines: the outcome of each document that was not simply indexed; ``line`` counts the documents from 1.
    """

    indexed: int = 0
    pending: int = 0
    incomplete: int = 0
    rejected: int = 0
    deleted: int = 0
    generation: int = 0
    lines: list[LineOutcome] = field(default_factory=list)

    def add(self, response: BulkResponse, documents_before: int) -> None:
        """Add the outcome of one request."""
        self.indexed += response.indexed
        self.pending += response.pending
        self.incomplete += response.incomplete
        self.rejected += response.rejected
        self.deleted += response.deleted
        self.generation = max(self.generation, response.generation)
        self.lines += (
            msgspec.structs.replace(each, line=each.line + documents_before)
            for each in response.lines
            if each.status != "indexed"
        )


def requests(documents: Iterable[Input], in_one: bool) -> Iterator[tuple[bytes, int]]:
    """Bodies of NDJSON, each with the number of its documents. A document that is larger than a body is one alone.

    :param in_one: whether there may be only one.
    :raises ValueError: if there may be only one, and the documents do not fit in it.
    """
    lines: list[bytes] = []
    size = 0
    for document in documents:
        line = ENCODER.encode(document)
        if lines and (len(lines) == MAX_LINES or size + len(line) > MAX_BYTES):
            if in_one:
                raise ValueError(
                    f"replace_chunks: more than {MAX_LINES} documents or {MAX_BYTES} bytes do not fit in one request: "
                    "call it for some documents with all of their chunks at a time"
                )
            yield b"\n".join(lines), len(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield b"\n".join(lines), len(lines)
