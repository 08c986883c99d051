"""Writes the documents of lines, in batches of bounded memory."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio.to_thread

from adapters import SENSITIVITIES, Viewer
from adapters.model.batching import batches as slices
from adapters.model.protection import is_visible
from adapters.ports import DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from fusion.doc_ids import doc_id
from orchestrator.auth.principal import Principal
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import (
    MAX_BATCH_BYTES,
    MAX_BATCH_DOCUMENTS,
    MAX_WRITE_DOCUMENTS,
    IndexingPipeline,
    next_batch,
    size_bytes,
)
from orchestrator.service.document_reports import IndexReport


class Batch(NamedTuple):
    """Lines, and the documents that they replace, that belong to one write.

    :param ends_write: whether no other batch is to be in the same write.
    """

    lines: Sequence[ParsedLine]
    replaced: Sequence[Key] = ()
    ends_write: bool = False


async def batches_of(lines: Iterable[ParsedLine]) -> AsyncIterator[Batch]:
    """The lines, in batches of bounded memory. They are read in a thread."""
    remaining = iter(lines)
    while batch := await anyio.to_thread.run_sync(next_batch, remaining):
        yield Batch(batch)


@dataclass(slots=True)
class _Write:
    """What is written next."""

    lines: list[ParsedLine] = field(default_factory=list)
    records: list[VectorRecord] = field(default_factory=list)
    replaced: list[Key] = field(default_factory=list)
    bytes: int = 0

    @property
    def is_full(self) -> bool:
        return max(len(self.lines), len(self.replaced)) >= MAX_WRITE_DOCUMENTS or self.bytes >= MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class LineWriter:
    """Checks, encodes and writes lines."""

    writer: DocumentWriter
    metadata_keys: MetadataKeys
    pipeline: IndexingPipeline

    def with_vectors(self, lines: Iterable[ParsedLine]) -> Iterator[ParsedLine]:
        """The lines; those without a vector that can be compared with the others become invalid."""
        for line in lines:
            problem = self.pipeline.vector_problem(line.document) if isinstance(line, ValidLine) else ""
            yield InvalidLine(line.line, problem) if problem else line

    async def write(
        self,
        batches: AsyncIterable[Batch],
        principal: Principal,
        on_lines: Callable[[Collection[ParsedLine]], None],
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> IndexReport:
        """Index lines of any number in bounded memory. Each write is durable before the next one is prepared.

        :param on_lines: called with the lines of each write; a line is invalid if its document was not written.
        :param on_progress: called with the number of documents encoded since the last call.
        :raises AdapterError: if a write failed; the ones before it are durable.
        """
        report = IndexReport()
        write = _Write()
        async for batch in batches:
            report.lines += len(batch.lines)
            lines = await anyio.to_thread.run_sync(self._checked, batch.lines, principal)
            write.lines += lines
            write.replaced += batch.replaced
            documents = [line.document for line in lines if isinstance(line, ValidLine)]
            for part in slices(documents, MAX_BATCH_DOCUMENTS):
                write.records += await self.pipeline.prepare(list(part), principal.scope)
                on_progress(len(part))
            write.bytes += sum(map(size_bytes, documents))
            if batch.ends_write or write.is_full:
                on_lines(await self._write(write, principal, report))
                write = _Write()
        on_lines(await self._write(write, principal, report))
        return report

    def _checked(self, lines: Iterable[ParsedLine], principal: Principal) -> Sequence[ParsedLine]:
        """The lines; those that the writer could not see, and with too many new metadata keys, become invalid."""
        visible = [_visible(line, principal.viewer) for line in lines]
        return self.metadata_keys.checked(visible, principal.scope)

    async def _write(self, write: _Write, principal: Principal, report: IndexReport) -> list[ParsedLine]:
        """Write the records of lines, and delete what they replace; a line becomes invalid if its document was not
        written."""
        if not (write.records or write.replaced):
            return write.lines
        acknowledgement = await self.writer.write(write.records, write.replaced, principal.viewer)
        report.add(write.records, len(write.replaced), acknowledgement)
        if keys := {key for each in write.records for key in each.record.document.metadata}:
            await anyio.to_thread.run_sync(self.metadata_keys.add, keys, principal.scope)
        hidden = {identity for _, _, identity in acknowledgement.hidden or ()}
        return [
            InvalidLine(line.line, f"id: {line.document.id[:80]!r} is taken by a document that you may not see")
            if isinstance(line, ValidLine) and doc_id(line.document.id, line.document.collection) in hidden
            else line
            for line in write.lines
        ]


def _visible(line: ParsedLine, viewer: Viewer) -> ParsedLine:
    """The line, or why its writer may not write it: the writer could neither see, replace nor delete the document."""
    if isinstance(line, InvalidLine) or viewer.sees(line.document.protection):
        return line
    protection = line.document.protection
    if not is_visible(protection.sensitivity, viewer.clearance):
        allowed = ", ".join(each for each in SENSITIVITIES if is_visible(each, viewer.clearance))
        problem = f"sensitivity: {protection.sensitivity!r} is above your clearance, allowed are {allowed}"
    elif protection.visibility == "private":
        own = f"you act for {viewer.user!r}" if viewer.user else "you act for no user"
        problem = f"owner: {str(protection.owner)[:80]!r} is another user, who alone could see the document; {own}"
    else:
        own = f"allowed are {', '.join(viewer.teams)[:200]}" if viewer.teams else "you act for no team"
        problem = f"team: {str(protection.team)[:80]!r} is not one of yours, so you could not see the document; {own}"
    return InvalidLine(line.line, problem)
