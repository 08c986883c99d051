"""Documents: index, read, delete, count. The same rules for every edge.

A principal replaces and deletes documents that it may see, and no others: a document above its clearance is refused on
writing, and does not exist on reading and deleting. That is decided when the write is applied, so writes are
accepted while the documents cannot be read.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio.to_thread

from adapters import (
    AdapterError,
    Document,
    DocumentReader,
    DocumentWriter,
    Record,
    Scope,
    TimedOut,
    Unavailable,
    VectorRecord,
)
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from fusion import Documents
from orchestrator.auth.principal import Principal
from orchestrator.auth.visibility import access_filter, visibility_check
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import (
    MAX_BATCH_BYTES,
    MAX_BATCH_DOCUMENTS,
    MAX_WRITE_DOCUMENTS,
    IndexingPipeline,
    size_bytes,
)
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import (
    BulkResponse,
    CollectionCount,
    CollectionsResponse,
    DeleteResponse,
    LineOutcome,
)
from orchestrator.service.admission import Admission
from orchestrator.service.errors import NotFound

_log = logging.getLogger(__name__)

MAX_LISTED_REJECTIONS = 1_000
"""Rejected lines that a response lists; it counts the others."""
MAX_LISTED_COLLECTIONS = 10_000
"""Collections that a response lists; it counts the others."""
READ_TIMEOUT_S = 5.0
"""Time limit of reading documents, the wait for a slot included."""


@dataclass(slots=True)
class IndexReport:
    """The outcome of indexing so far.

    :param generation: of the newest write; 0 if nothing was written.
    :param pending: by replica, why it does not have the newest write yet.
    :param rejected: by document and replica, why the replica refused the document.
    :param undecided: documents for which it is not known yet whether the writer may replace them, because the replica
        that documents are read from is unavailable.
    """

    indexed: int = 0
    generation: int = 0
    pending: Mapping[str, str] = field(default_factory=dict)
    rejected: dict[Key, Mapping[str, str]] = field(default_factory=dict)
    undecided: set[Key] = field(default_factory=set)

    def add(self, records: Sequence[VectorRecord], acknowledgement: Acknowledgement) -> None:
        """Add one write. A replica that lacked an earlier one may have it now, so the newest report counts."""
        keys = {each.record.key for each in records}
        if acknowledgement.hidden is None:
            self.undecided |= keys
        else:
            self.indexed += sum(each.record.key not in acknowledgement.hidden for each in records)
        self.generation = acknowledgement.generation
        self.pending = acknowledgement.pending
        self.rejected |= acknowledgement.rejected


@dataclass(frozen=True, slots=True)
class DocumentService:
    """The documents.

    :param documents: the replica that documents are read from.
    :param is_current: whether that replica has every write. Blocks.
    :param generation: of the newest write that searches see.
    :param uploads: by tenant, slots for the bodies that are read or wait to be written.
    :param write_timeout_s: how long a write waits for a slot.
    """

    documents: DocumentReader
    writer: DocumentWriter
    metadata_keys: MetadataKeys
    pipeline: IndexingPipeline
    reads: Admission
    uploads: Mapping[str, Admission]
    writes: Admission
    is_current: Callable[[], bool]
    generation: Callable[[], int]
    write_timeout_s: float

    async def put(
        self, read_lines: Callable[[], Awaitable[Iterable[ParsedLine]]], principal: Principal
    ) -> BulkResponse:
        """Index lines: each valid line is stored, each invalid one is reported.

        :param read_lines: reads the body. Few bodies of a tenant are read at once, and each before its write takes a
            slot, so that a slow upload delays no other tenant.
        :raises Forbidden: if the principal may not write.
        :raises BadRequest: if there is no line.
        :raises Overloaded: if too many writes are waiting.
        :raises AdapterError: if nothing was written.
        """
        principal.require("admin")
        tenant = principal.scope.tenant
        async with self.uploads[tenant].slot(tenant, self.write_timeout_s):
            parsed = await read_lines()
            lines: list[ParsedLine] = []
            async with self.writes.slot(tenant, self.write_timeout_s):
                report = await self._index(parsed, principal, lines.extend)
            return await anyio.to_thread.run_sync(_bulk_response, lines, report, principal.scope, self.generation())

    async def index(
        self,
        lines: Iterable[ParsedLine],
        principal: Principal,
        on_invalid: Callable[[InvalidLine], None],
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> IndexReport:
        """Index lines of any number in bounded memory. Each batch is durable before the next one is read.

        May be repeated from the start after a crash: documents are identified by their id.

        :param on_invalid: called with each line that was not indexed.
        :param on_progress: called with the number of documents encoded since the last call.
        :raises Forbidden: if the principal may not write.
        :raises BadRequest: if there is no line.
        :raises AdapterError: if a batch could not be written; the ones before it are.
        """
        principal.require("admin")

        def report_lines(batch: Collection[ParsedLine]) -> None:
            for line in batch:
                if isinstance(line, InvalidLine):
                    on_invalid(line)

        return await self._index(lines, principal, report_lines, on_progress)

    async def get(self, id_: str, principal: Principal) -> Document:
        """One document as it was written.

        :raises NotFound: if it does not exist, or the principal may not see it.
        :raises TimedOut: if it cannot be read in time.
        """
        async with self._read_slot(principal):
            record = await self._visible(id_, principal)
        if record is None:
            raise NotFound(f"no document {id_[:80]!r}")
        return record.document

    async def get_many(self, ids: Collection[str], principal: Principal) -> dict[str, Document]:
        """The documents that exist and that the principal may see, by id."""
        check = visibility_check(access_filter(principal.scope, principal.clearance))
        records = await self._existing(ids, principal.scope)
        return {id_: record.document for id_, record in records.items() if check(record)}

    async def delete(self, id_: str, principal: Principal) -> DeleteResponse:
        """Delete one document. A document that does not exist is no error, so that a client may repeat the request.

        :raises Forbidden: if the principal may not write.
        """
        principal.require("admin")
        async with self.writes.slot(principal.scope.tenant, self.write_timeout_s):
            try:
                if await self._visible(id_, principal) is None:
                    return DeleteResponse(id_, False, self.generation())
                deleted: bool | None = True
            except AdapterError as error:
                _log.warning(
                    "a delete is written although it is not known whether the document exists: %s", error.for_operators
                )
                deleted = None
            key = (principal.scope.tenant, principal.scope.environment, id_)
            acknowledgement = await self.writer.write((), [key], principal.clearance)
        if acknowledgement.hidden is None:
            deleted = None
        elif key in acknowledgement.hidden:
            deleted = False
        return DeleteResponse(id_, deleted, acknowledgement.generation, acknowledgement.pending)

    async def collections(self, principal: Principal) -> CollectionsResponse:
        """Every collection with a document that the principal may see; of more than 10,000, the largest."""
        async with self._read_slot(principal):
            visible = access_filter(principal.scope, principal.clearance)
            counts = await self.documents.counts("collection", visible)
            return await anyio.to_thread.run_sync(_collections_response, counts)

    async def _index(
        self,
        lines: Iterable[ParsedLine],
        principal: Principal,
        on_lines: Callable[[Collection[ParsedLine]], None],
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> IndexReport:
        report = IndexReport()
        waiting: list[ParsedLine] = []
        records: list[VectorRecord] = []
        size, line_count = 0, 0
        remaining = iter(lines)
        while batch := await anyio.to_thread.run_sync(self._checked_batch, remaining, principal.scope):
            line_count += len(batch)
            waiting += batch
            documents = [line.document for line in batch if isinstance(line, ValidLine)]
            if documents:
                records += await self.pipeline.prepare(documents, principal.scope)
                on_progress(len(documents))
                size += sum(map(size_bytes, documents))
            if len(waiting) >= MAX_WRITE_DOCUMENTS or size >= MAX_BATCH_BYTES:
                on_lines(await self._write(waiting, records, principal, report))
                waiting, records, size = [], [], 0
        if not line_count:
            raise BadRequest("no documents: there must be at least one line with a JSON object")
        on_lines(await self._write(waiting, records, principal, report))
        return report

    def _checked_batch(self, lines: Iterator[ParsedLine], scope: Scope) -> Sequence[ParsedLine]:
        """The next lines; those with too many new metadata keys become invalid."""
        return self.metadata_keys.checked(_next_batch(lines), scope)

    async def _write(
        self, lines: list[ParsedLine], records: list[VectorRecord], principal: Principal, report: IndexReport
    ) -> list[ParsedLine]:
        """Write the records of lines; a line becomes invalid if its document was not written."""
        if not records:
            return lines
        acknowledgement = await self.writer.write(records, (), principal.clearance)
        report.add(records, acknowledgement)
        hidden = {id_ for _, _, id_ in acknowledgement.hidden or ()}
        return [
            InvalidLine(
                line.line, f"id: {line.document.id[:80]!r} is taken by a document above your clearance - at `$.id`"
            )
            if isinstance(line, ValidLine) and line.document.id in hidden
            else line
            for line in lines
        ]

    async def _visible(self, id_: str, principal: Principal) -> Record | None:
        record = (await self._existing([id_], principal.scope)).get(id_)
        check = visibility_check(access_filter(principal.scope, principal.clearance))
        return record if record is not None and check(record) else None

    async def _existing(self, ids: Collection[str], scope: Scope) -> Mapping[str, Record]:
        if not await anyio.to_thread.run_sync(self.is_current):
            raise Unavailable("the replica that documents are read from does not have all writes yet: try again soon")
        return await self.documents.fetch(scope, Documents.of_ids(ids))

    @asynccontextmanager
    async def _read_slot(self, principal: Principal) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S), self.reads.slot(principal.scope.tenant, READ_TIMEOUT_S):
                yield
        except TimeoutError:
            raise TimedOut(f"the documents could not be read within {READ_TIMEOUT_S:g} s") from None


def _next_batch(lines: Iterator[ParsedLine]) -> list[ParsedLine]:
    """The next lines: at most :data:`MAX_BATCH_DOCUMENTS`, fewer if the documents are large; empty at the end."""
    batch: list[ParsedLine] = []
    size = 0
    for line in lines:
        batch.append(line)
        if isinstance(line, ValidLine):
            size += size_bytes(line.document)
        if len(batch) >= MAX_BATCH_DOCUMENTS or size >= MAX_BATCH_BYTES:
            break
    return batch


def _collections_response(counts: Mapping[str, int]) -> CollectionsResponse:
    """The largest of the collections, by name. Blocks: a tenant may have a hundred thousand."""
    largest = heapq.nsmallest(MAX_LISTED_COLLECTIONS, counts.items(), key=lambda item: (-item[1], item[0]))
    collections = tuple(CollectionCount(name, count) for name, count in sorted(largest))
    return CollectionsResponse(collections, len(counts) - len(largest))


def _bulk_response(lines: Sequence[ParsedLine], report: IndexReport, scope: Scope, generation: int) -> BulkResponse:
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
        generation=report.generation or generation,
        lines=tuple(listed),
        unlisted=max(0, counts["rejected"] - MAX_LISTED_REJECTIONS),
    )


def _outcome(line: ParsedLine, report: IndexReport, scope: Scope) -> LineOutcome:
    if isinstance(line, InvalidLine):
        return LineOutcome(line.line, "rejected", error=line.error)
    id_ = line.document.id
    key = (scope.tenant, scope.environment, id_)
    missing = {**report.pending, **report.rejected.get(key, {})}
    if key in report.undecided:
        return LineOutcome(line.line, "pending", id=id_, missing=missing)
    return LineOutcome(line.line, "incomplete" if missing else "indexed", id=id_, missing=missing)
