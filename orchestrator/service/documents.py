"""Documents: index, read, delete, count. The same rules for every edge.

A principal replaces and deletes documents that it may see, and no others: a document above its clearance is refused on
writing, and does not exist on reading and deleting. That is decided when the write is applied, so writes are
accepted while the documents cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

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
from adapters.model.filter import Eq, Filter, conjunction, normal
from adapters.ports.replica import Key
from fusion import DocId, Documents
from fusion.doc_ids import DEFAULT_COLLECTION, doc_id
from orchestrator.auth.principal import Principal
from orchestrator.auth.visibility import access_filter, visibility_check
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import (
    MAX_BATCH_BYTES,
    MAX_WRITE_DOCUMENTS,
    IndexingPipeline,
    next_batch,
    size_bytes,
)
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import request_filter
from orchestrator.schema.documents import BulkResponse, CollectionsResponse, DeleteManyResponse, DeleteResponse
from orchestrator.service.admission import Admission
from orchestrator.service.document_reports import IndexReport, bulk_response, collections_response
from orchestrator.service.errors import Ambiguous, NotFound

_log = logging.getLogger(__name__)

_MAX_SEARCHED_COLLECTIONS = 64
"""Collections in which an id is looked up; with more, a request has to name one."""
_MAX_DELETED, _MAX_CHUNKS = 1_000, 10_000
"""Documents that are deleted in one write, and chunks of one document."""
READ_TIMEOUT_S = 5.0
"""Time limit of reading documents, the wait for a slot included."""


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
            return await anyio.to_thread.run_sync(bulk_response, lines, report, principal.scope, self.generation())

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

    async def get(self, id_: str, principal: Principal, collection: str | None = None) -> Document:
        """One document as it was written.

        :param collection: of the document; it is needed if documents of several collections have the id.
        :raises NotFound: if it does not exist, or the principal may not see it.
        :raises Ambiguous: if there are several, and no collection is named.
        :raises TimedOut: if it cannot be read in time.
        """
        async with self._read_slot(principal):
            record = await self._visible(id_, principal, collection)
        if record is None:
            raise NotFound(f"no document {id_[:80]!r}{f' in {collection[:80]!r}' if collection else ''}")
        return record.document

    async def get_many(self, identities: Collection[DocId], principal: Principal) -> dict[DocId, Document]:
        """The documents that exist and that the principal may see, by what identifies them."""
        check = visibility_check(access_filter(principal.scope, principal.clearance))
        records = await self._existing(identities, principal.scope)
        return {identity: record.document for identity, record in records.items() if check(record)}

    async def delete(
        self, id_: str, principal: Principal, collection: str | None = None, with_chunks: bool = True
    ) -> DeleteResponse:
        """Delete one document and its chunks. One that does not exist is no error, so that a client may repeat this.

        If the documents cannot be read, and no collection is named, the document of the default collection is deleted,
        without chunks.

        :param collection: of the document; it is needed if documents of several collections have the id.
        :raises Forbidden: if the principal may not write.
        :raises Ambiguous: if there are several, and no collection is named.
        """
        principal.require("admin")
        scope = principal.scope
        async with self.writes.slot(scope.tenant, self.write_timeout_s):
            chunks: list[Key] = []
            try:
                record = await self._visible(id_, principal, collection)
                if record is None:
                    return DeleteResponse(id_, False, self.generation())
                if with_chunks:
                    chunks = await self._chunks(record, principal)
                deleted: bool | None = True
                key = record.key
            except AdapterError as error:
                _log.warning(
                    "a delete is written although it is not known whether the document exists: %s", error.for_operators
                )
                deleted = None
                key = (scope.tenant, scope.environment, doc_id(id_, collection or DEFAULT_COLLECTION))
            acknowledgement = await self.writer.write((), [key, *chunks], principal.clearance)
        if acknowledgement.hidden is None:
            deleted = None
        elif key in acknowledgement.hidden:
            deleted = False
        return DeleteResponse(id_, deleted, acknowledgement.generation, acknowledgement.pending, len(chunks))

    async def delete_many(self, condition: Filter, principal: Principal, dry_run: bool = False) -> DeleteManyResponse:
        """Delete the documents that match a filter, in writes of a thousand.

        :param dry_run: count them only.
        :raises Forbidden: if the principal may not write.
        :raises BadRequest: if the filter is not allowed.
        :raises AdapterError: if the documents cannot be read; those of the writes before are deleted.
        """
        principal.require("admin")
        access = access_filter(principal.scope, principal.clearance)
        chosen = conjunction(access, request_filter(condition))
        async with self.writes.slot(principal.scope.tenant, self.write_timeout_s):
            matched = sum((await self.documents.counts("collection", chosen)).values())
            deleted: set[Key] = set()
            generation, pending = self.generation(), dict[str, str]()
            while not dry_run:
                found = await self.documents.find(chosen, _MAX_DELETED)
                keys = {record.key for record in found} - deleted
                if not keys:  # a server may find deleted documents for a moment
                    break
                acknowledgement = await self.writer.write((), keys, principal.clearance)
                deleted |= keys
                generation, pending = acknowledgement.generation, dict(acknowledgement.pending)
        return DeleteManyResponse(max(matched, len(deleted)), len(deleted), generation, pending)

    async def collections(self, principal: Principal) -> CollectionsResponse:
        """Every collection with a document that the principal may see; of more than 10,000, the largest."""
        async with self._read_slot(principal):
            visible = access_filter(principal.scope, principal.clearance)
            counts = await self.documents.counts("collection", visible)
            return await anyio.to_thread.run_sync(collections_response, counts)

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
        return self.metadata_keys.checked(next_batch(lines), scope)

    async def _write(
        self, lines: list[ParsedLine], records: list[VectorRecord], principal: Principal, report: IndexReport
    ) -> list[ParsedLine]:
        """Write the records of lines; a line becomes invalid if its document was not written."""
        if not records:
            return lines
        acknowledgement = await self.writer.write(records, (), principal.clearance)
        report.add(records, acknowledgement)
        hidden = {identity for _, _, identity in acknowledgement.hidden or ()}
        return [
            InvalidLine(
                line.line, f"id: {line.document.id[:80]!r} is taken by a document above your clearance - at `$.id`"
            )
            if isinstance(line, ValidLine) and doc_id(line.document.id, line.document.collection) in hidden
            else line
            for line in lines
        ]

    async def _chunks(self, record: Record, principal: Principal) -> list[Key]:
        """The chunks of a document that the principal may see: of its collection; and of any other that has no document
        of its id, if no further collection has one."""
        document, access = record.document, access_filter(principal.scope, principal.clearance)
        condition = conjunction(access, normal(Eq("parent_id", document.id)))
        chunks = await self.documents.find(condition, _MAX_CHUNKS)
        if len(chunks) == _MAX_CHUNKS:
            raise BadRequest(
                f"{document.id[:80]!r} has {_MAX_CHUNKS} chunks or more: delete them by a filter of parent_id"
            )
        if any(chunk.document.collection != document.collection for chunk in chunks):
            is_only = len(await self._with_id(document.id, principal, None)) == 1
            chunks = [each for each in chunks if is_only or each.document.collection == document.collection]
        return [chunk.key for chunk in chunks]

    async def _visible(self, id_: str, principal: Principal, collection: str | None) -> Record | None:
        """The document, if there is one that the principal may see.

        :raises Ambiguous: if there are several.
        """
        visible = await self._with_id(id_, principal, collection)
        if len(visible) > 1:
            found = ", ".join(sorted(record.document.collection for record in visible))
            raise Ambiguous(f"several documents have the id {id_[:80]!r}: name a collection, one of {found}")
        return visible[0] if visible else None

    async def _with_id(self, id_: str, principal: Principal, collection: str | None) -> list[Record]:
        """The documents of an id that the principal may see.

        :raises Ambiguous: if there are too many collections to look in.
        """
        access = access_filter(principal.scope, principal.clearance)
        names = {collection} if collection else {DEFAULT_COLLECTION, *await self.documents.counts("collection", access)}
        if len(names) > _MAX_SEARCHED_COLLECTIONS:
            raise Ambiguous(f"there are {len(names)} collections: name that of the document")
        records = await self._existing([doc_id(id_, name) for name in names], principal.scope)
        return list(filter(visibility_check(access), records.values()))

    async def _existing(self, ids: Collection[DocId], scope: Scope) -> Mapping[DocId, Record]:
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
