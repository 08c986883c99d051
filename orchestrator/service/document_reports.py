"""What became of documents: the reports of writing them, and the responses to callers."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from adapters import Scope
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from fusion.doc_ids import doc_id
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import BulkResponse, CollectionCount, CollectionsResponse, LineOutcome

MAX_LISTED_REJECTIONS = 1_000
"""Rejected lines that a response lists; it counts the others."""
MAX_LISTED_COLLECTIONS = 10_000
"""Collections that a response lists; it counts the others."""


class WrittenLine(msgspec.Struct, frozen=True, gc=False):
    """A line whose document was written; a body may have 100,000, whose documents do not fit in memory."""

    line: int
    id: str
    collection: str


@dataclass(slots=True)
class IndexReport:
    """The outcome of indexing so far.

    :param lines: that there were, invalid ones included.
    :param deleted: documents that were deleted because the indexed ones replace them.
    :param generation: of the newest write; 0 if nothing was written.
    :param pending: by replica, why it does not have the newest write yet.
    :param rejected: by document and replica, why the replica refused the document.
    :param undecided: documents for which it is not known yet whether the writer may replace them, because the replica
        that documents are read from is unavailable.
    """

    lines: int = 0
    indexed: int = 0
    deleted: int = 0
    generation: int = 0
    pending: Mapping[str, str] = field(default_factory=dict)
    rejected: dict[Key, Mapping[str, str]] = field(default_factory=dict)
    undecided: set[Key] = field(default_factory=set)

    def require_lines(self) -> IndexReport:
        """The report itself.

        :raises BadRequest: if there was no line.
        """
        if not self.lines:
            raise BadRequest("no documents: there must be at least one line with a JSON object")
        return self

    def add(self, records: Sequence[VectorRecord], deleted: int, acknowledgement: Acknowledgement) -> None:
        """Add one write.

        A replica that lacked an earlier write may have it now, so the newest acknowledgement counts.
        """
        keys = {each.record.key for each in records}
        if acknowledgement.hidden is None:
            self.undecided |= keys
        else:
            self.indexed += sum(each.record.key not in acknowledgement.hidden for each in records)
        self.deleted += deleted
        self.generation = acknowledgement.generation
        self.pending = acknowledgement.pending
        self.rejected |= acknowledgement.rejected


def collections_response(counts: Mapping[str, int]) -> CollectionsResponse:
    """The largest of the collections, by name. Blocks: a tenant may have a hundred thousand."""
    largest = heapq.nsmallest(MAX_LISTED_COLLECTIONS, counts.items(), key=lambda item: (-item[1], item[0]))
    collections = tuple(CollectionCount(name, count) for name, count in sorted(largest))
    return CollectionsResponse(collections, len(counts) - len(largest))


def without_document(line: ParsedLine) -> WrittenLine | InvalidLine:
    """What a response needs of a line."""
    return line if isinstance(line, InvalidLine) else WrittenLine(line.line, line.document.id, line.document.collection)


def bulk_response(
    lines: Iterable[WrittenLine | InvalidLine], report: IndexReport, scope: Scope, generation: int
) -> BulkResponse:
    """The response to a write of lines. Blocks: there may be a hundred thousand.

    :param generation: of the newest write, if nothing was written.
    """
    counts: Counter[str] = Counter()
    listed = []
    for line in lines:
        outcome = _outcome(line, report, scope)
        counts[outcome.status] += 1
        if outcome.status != "rejected" or counts["rejected"] <= MAX_LISTED_REJECTIONS:
            listed.append(outcome)
    return BulkResponse(
        indexed=counts["indexed"],
        pending=counts["pending"],
        incomplete=counts["incomplete"],
        rejected=counts["rejected"],
        deleted=report.deleted,
        generation=report.generation or generation,
        lines=tuple(listed),
        unlisted=max(0, counts["rejected"] - MAX_LISTED_REJECTIONS),
    )


def with_reason(response: BulkResponse, reason: str) -> BulkResponse:
    """The same with a reason in the first rejected line that holds for all of them."""
    lines = list(response.lines)
    for index, line in enumerate(lines):
        if line.error is not None:
            lines[index] = msgspec.structs.replace(line, error=f"{line.error}; {reason}")
            return msgspec.structs.replace(response, lines=tuple(lines))
    return response


def _outcome(line: WrittenLine | InvalidLine, report: IndexReport, scope: Scope) -> LineOutcome:
    if isinstance(line, InvalidLine):
        return LineOutcome(line.line, "rejected", error=line.error)
    id_ = line.id
    key = (scope.tenant, scope.environment, doc_id(id_, line.collection))
    missing = {**report.pending, **report.rejected.get(key, {})}
    if key in report.undecided:
        return LineOutcome(line.line, "pending", id=id_, missing=missing)
    return LineOutcome(line.line, "incomplete" if missing else "indexed", id=id_, missing=missing)
