"""Documents: index, read, list, delete, count. The same rules for every edge.

A principal replaces and deletes documents that it may see, and no others: what it may not see is refused on writing,
and does not exist on reading and deleting. That is decided when the write is applied, so writes are
accepted while the documents cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import anyio.to_thread

from adapters import AdapterError, Document, TimedOut
from adapters.model.filter import Filter, conjunction
from adapters.ports import DocumentReader
from adapters.ports.documents import DocumentPage
from adapters.ports.replica import Key
from fusion.doc_ids import DEFAULT_COLLECTION, doc_id
from fusion.values import DocId
from orchestrator.auth.principal import Principal
from orchestrator.auth.visibility import access_filter, visibility_check
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import MAX_BATCH_BYTES, MAX_WRITE_DOCUMENTS, size_bytes
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import request_filter
from orchestrator.schema.documents import BulkResponse, CollectionsResponse, DeleteManyResponse, DeleteResponse
from orchestrator.service.admission import Admission
from orchestrator.service.chunked_lines import ChunkedLines, stale_chunks
from orchestrator.service.document_lookup import DocumentLookup
from orchestrator.service.document_reports import (
    IndexReport,
    WrittenLine,
    bulk_response,
    collections_response,
    without_document,
)
from orchestrator.service.line_writer import Batch, LineWriter, batches_of

_log = logging.getLogger(__name__)

_MAX_DELETED = 1_000
"""Documents that are deleted in one write."""
DEFAULT_LISTED, MAX_LISTED = 100, 1_000
"""Documents on one page of a list."""
ChunkHandling: TypeAlias = Literal["given", "split"]
"""What becomes of the chunks of the documents that are written."""
READ_TIMEOUT_S = 5.0
"""Time limit of reading documents, the wait for a slot included."""


@dataclass(frozen=True, slots=True)
class DocumentService:
    """The documents.

    :param documents: the replica that documents are read from.
    :param is_current: whether that replica has every write. Blocks.
    :param generation: of the newest write that searches see.
    :param writes: slots for writing; ``deletes``: for deleting documents by id, which are combined to few writes.
    :param uploads: by tenant, slots for the bodies that are read or wait to be written.
    :param write_timeout_s: how long a write waits for a slot.
    :param chunker: what splits documents into chunks of the default size.
    """

    documents: DocumentReader
    lines: LineWriter
    reads: Admission
    uploads: Mapping[str, Admission]
    writes: Admission
    deletes: Admission
    is_current: Callable[[], bool]
    generation: Callable[[], int]
    write_timeout_s: float
    chunker: Callable[[], Chunker]

    async def put(
        self,
        read_lines: Callable[[], Awaitable[Iterable[ParsedLine]]],
        principal: Principal,
        chunks: ChunkHandling | None = None,
    ) -> BulkResponse:
        """Index lines: each valid line is stored, each invalid one is reported.

        :param read_lines: receives the body; its lines are parsed as they are written. Few bodies of a tenant are
            received at once, and each before its write takes a slot, so that a slow upload delays no other tenant.
        :param chunks: ``given``: the lines are all chunks of the documents that they belong to; in the same write, the
            chunks of these documents that are not among the lines are deleted, so every line has to be valid.
            ``split``: each document is split into chunks, which replace those that it has.
        :raises Forbidden: if the principal may not write.
        :raises BadRequest: if there is no line; if the chunks are given, and one is invalid, or they are too many; if
            documents are to be split, and nothing encodes texts.
        :raises Overloaded: if too many writes are waiting.
        :raises AdapterError: if nothing was written.
        """
        principal.require("admin")
        if chunks == "split":
            self.require_encoder("chunk: chunks")
        tenant = principal.scope.tenant
        async with self.uploads[tenant].slot(tenant, self.write_timeout_s):
            lines = await read_lines()
            outcomes: list[WrittenLine | InvalidLine] = []

            def keep(written: Collection[ParsedLine]) -> None:
                outcomes.extend(map(without_document, written))

            async with self.writes.slot(tenant, self.write_timeout_s):
                batches = self._batches(self.lines.with_vectors(lines), principal, chunks)
                report = await self.lines.write(batches, principal, keep)
                report.require_lines()
            return await anyio.to_thread.run_sync(bulk_response, outcomes, report, principal.scope, self.generation())

    def require_encoder(self, texts: str) -> None:
        """Check that texts are encoded.

        :param texts: what has to be encoded, for the error.
        :raises BadRequest: if they are not.
        """
        if not self.lines.pipeline.encodes_texts:
            raise BadRequest(f"{texts} have no vectors, and TRIVIUM_EMBEDDER encodes no text: write documents that do")

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

        batches = batches_of(self.lines.with_vectors(lines))
        report = await self.lines.write(batches, principal, report_lines, on_progress)
        return report.require_lines()

    async def get(self, id_: str, principal: Principal, collection: str | None = None) -> Document:
        """One document as it was written.

        :param collection: of the document; it is needed if documents of several collections have the id.
        :raises NotFound: if it does not exist, or the principal may not see it.
        :raises Ambiguous: if there are several, and no collection is named.
        :raises TimedOut: if it cannot be read in time.
        """
        async with self.read_slot(principal):
            return (await self.lookup.existing(id_, principal, collection)).whole

    async def get_many(self, identities: Collection[DocId], principal: Principal) -> dict[DocId, Document]:
        """The documents that exist and that the principal may see, by what identifies them."""
        check = visibility_check(access_filter(principal.scope, principal.viewer))
        records = await self.lookup.by_identity(identities, principal.scope)
        return {identity: record.whole for identity, record in records.items() if check(record)}

    async def page(
        self,
        principal: Principal,
        condition: Filter | None = None,
        limit: int = DEFAULT_LISTED,
        start: str | None = None,
    ) -> DocumentPage:
        """Some of the documents that match a filter and that the principal may see, in a fixed order.

        :param limit: 1 to :data:`MAX_LISTED`; fewer are returned if they are large.
        :param start: ``next`` of the page before.
        :raises BadRequest: if the filter or the limit is not allowed.
        :raises TimedOut: if they cannot be read in time.
        """
        if not 1 <= limit <= MAX_LISTED:
            raise BadRequest(f"limit: {limit}, allowed are 1 to {MAX_LISTED}")
        visible = access_filter(principal.scope, principal.viewer)
        chosen = visible if condition is None else conjunction(visible, request_filter(condition))
        async with self.read_slot(principal):
            return await self.documents.page(chosen, limit, start)

    async def all(self, principal: Principal, condition: Filter | None = None) -> AsyncIterator[Document]:
        """The documents of all pages."""
        start: str | None = None
        while True:
            page = await self.page(principal, condition, MAX_LISTED, start)
            for record in page.records:
                yield record.whole
            if page.next is None:
                return
            start = page.next

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
        async with self.deletes.slot(scope.tenant, self.write_timeout_s):
            chunks: list[Key] = []
            try:
                record = await self.lookup.by_id(id_, principal, collection)
                if record is None:
                    return DeleteResponse(id_, False, self.generation())
                if with_chunks:
                    chunks = [each.key for each in await self.lookup.chunks(record.document, principal)]
                deleted: bool | None = True
                key = record.key
            except AdapterError as error:
                _log.warning(
                    "a delete is written although it is not known whether the document exists: %s", error.for_operators
                )
                deleted = None
                key = (scope.tenant, scope.environment, doc_id(id_, collection or DEFAULT_COLLECTION))
            acknowledgement = await self.lines.writer.write((), [key, *chunks], principal.viewer)
        if acknowledgement.hidden is None:
            deleted = None
        elif key in acknowledgement.hidden or key in acknowledgement.absent:  # another process has deleted it
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
        access = access_filter(principal.scope, principal.viewer)
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
                acknowledgement = await self.lines.writer.write((), keys, principal.viewer)
                deleted |= keys - acknowledgement.absent
                generation, pending = acknowledgement.generation, dict(acknowledgement.pending)
        return DeleteManyResponse(max(matched, len(deleted)), len(deleted), generation, pending)

    async def collections(self, principal: Principal) -> CollectionsResponse:
        """Every collection with a document that the principal may see; of more than 10,000, the largest."""
        async with self.read_slot(principal):
            visible = access_filter(principal.scope, principal.viewer)
            counts = await self.documents.counts("collection", visible)
            return await anyio.to_thread.run_sync(collections_response, counts)

    @property
    def lookup(self) -> DocumentLookup:
        """Finds documents by id and by parent."""
        return DocumentLookup(self.documents, self.is_current)

    async def _batches(
        self, lines: Iterable[ParsedLine], principal: Principal, chunks: ChunkHandling | None
    ) -> AsyncIterator[Batch]:
        if chunks == "given":
            valid = await anyio.to_thread.run_sync(_lines_of_one_write, lines)
            documents = [line.document for line in valid]
            if valid:
                yield Batch(valid, await stale_chunks(self.lookup, documents, documents, principal))
            return
        of_lines = batches_of(lines)
        if chunks == "split":
            of_lines = ChunkedLines(self.lookup, self.chunker).batches(lines, principal)
        async for batch in of_lines:
            yield batch

    @asynccontextmanager
    async def read_slot(self, principal: Principal) -> AsyncIterator[None]:
        """A slot for reading documents, within :data:`READ_TIMEOUT_S`.

        :raises TimedOut: if they cannot be read in time.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT_S), self.reads.slot(principal.scope.tenant, READ_TIMEOUT_S):
                yield
        except TimeoutError:
            raise TimedOut(f"the documents could not be read within {READ_TIMEOUT_S:g} s") from None


def _lines_of_one_write(lines: Iterable[ParsedLine]) -> list[ValidLine]:
    """The lines, which are all valid. Blocks.

    :raises BadRequest: if one is invalid, or they do not fit in one write.
    """
    advice = "send several requests, each with all chunks of its documents"
    valid: list[ValidLine] = []
    size = 0
    for line in lines:
        if isinstance(line, InvalidLine):
            raise BadRequest(f"replace: line {line.line} is invalid, so nothing is written: {line.error}")
        valid.append(line)
        size += size_bytes(line.document)
        if len(valid) > MAX_WRITE_DOCUMENTS:
            raise BadRequest(f"replace: more than the {MAX_WRITE_DOCUMENTS} lines allowed: {advice}")
        if size >= MAX_BATCH_BYTES:
            raise BadRequest(f"replace: {size} bytes and more, allowed are fewer than {MAX_BATCH_BYTES}: {advice}")
    return valid
