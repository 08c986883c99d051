"""Writes the documents of lines, in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import anyio.to_thread

from adapters import SENSITIVITIES, Sensitivity
from adapters.model.document import is_visible
from adapters.ports import DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from fusion.doc_ids import doc_id
from orchestrator.auth.principal import Principal
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
from orchestrator.service.document_reports import IndexReport


@dataclass(frozen=True, slots=True)
class LineWriter:
    """Checks, encodes and writes lines."""

    writer: DocumentWriter
    metadata_keys: MetadataKeys
    pipeline: IndexingPipeline

    async def write(
        self,
        lines: Iterable[ParsedLine],
        principal: Principal,
        on_lines: Callable[[Collection[ParsedLine]], None],
        on_progress: Callable[[int], None] = lambda _: None,
        replaced: Sequence[Key] = (),
    ) -> IndexReport:
        """Index lines of any number in bounded memory. Each batch is durable before the next one is read.

        :param on_lines: called with the lines of each write; a line is invalid if its document was not written.
        :param on_progress: called with the number of documents encoded since the last call.
        :param replaced: documents that are deleted in the first write.
        :raises BadRequest: if there is no line.
        :raises AdapterError: if a batch could not be written; the ones before it are.
        """
        report = IndexReport()
        waiting: list[ParsedLine] = []
        records: list[VectorRecord] = []
        size, line_count = 0, 0
        remaining = iter(lines)
        while batch := await anyio.to_thread.run_sync(self._checked_batch, remaining, principal):
            line_count += len(batch)
            waiting += batch
            documents = [line.document for line in batch if isinstance(line, ValidLine)]
            if documents:
                records += await self.pipeline.prepare(documents, principal.scope)
                on_progress(len(documents))
                size += sum(map(size_bytes, documents))
            if len(waiting) >= MAX_WRITE_DOCUMENTS or size >= MAX_BATCH_BYTES:
                on_lines(await self._write(waiting, records, replaced, principal, report))
                waiting, records, replaced, size = [], [], (), 0
        if not line_count:
            raise BadRequest("no documents: there must be at least one line with a JSON object")
        on_lines(await self._write(waiting, records, replaced, principal, report))
        return report

    def _checked_batch(self, lines: Iterator[ParsedLine], principal: Principal) -> Sequence[ParsedLine]:
        """The next lines; those above the writer's clearance, and with too many new metadata keys, become invalid."""
        batch = [_within_clearance(line, principal.clearance) for line in next_batch(lines)]
        return self.metadata_keys.checked(batch, principal.scope)

    async def _write(
        self,
        lines: list[ParsedLine],
        records: list[VectorRecord],
        replaced: Sequence[Key],
        principal: Principal,
        report: IndexReport,
    ) -> list[ParsedLine]:
        """Write the records of lines, and delete what they replace; a line becomes invalid if its document was not
        written."""
        if not records:
            return lines
        acknowledgement = await self.writer.write(records, replaced, principal.clearance)
        report.add(records, len(replaced), acknowledgement)
        if keys := {key for each in records for key in each.record.document.metadata}:
            await anyio.to_thread.run_sync(self.metadata_keys.add, keys, principal.scope)
        hidden = {identity for _, _, identity in acknowledgement.hidden or ()}
        return [
            InvalidLine(line.line, f"id: {line.document.id[:80]!r} is taken by a document above your clearance")
            if isinstance(line, ValidLine) and doc_id(line.document.id, line.document.collection) in hidden
            else line
            for line in lines
        ]


def _within_clearance(line: ParsedLine, clearance: Sensitivity) -> ParsedLine:
    """The line, or why its writer may not write it: the writer could neither see, replace nor delete the document."""
    if isinstance(line, InvalidLine) or is_visible(line.document.sensitivity, clearance):
        return line
    allowed = ", ".join(each for each in SENSITIVITIES if is_visible(each, clearance))
    return InvalidLine(
        line.line,
        f"sensitivity: {line.document.sensitivity!r} is above your clearance, allowed are {allowed}",
    )
