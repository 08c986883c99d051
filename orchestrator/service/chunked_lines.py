"""Lines whose documents are split into chunks as they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import anyio.to_thread

from adapters import Document
from adapters.ports.replica import Key
from fusion.doc_ids import doc_id
from fusion.values import DocId
from orchestrator.auth.principal import Principal
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS, size_bytes
from orchestrator.service.document_lookup import DocumentLookup
from orchestrator.service.line_writer import Batch


@dataclass(frozen=True, slots=True)
class ChunkedLines:
    """Splits the documents of lines.

    :param chunker: what splits them; made when it is first needed.
    """

    lookup: DocumentLookup
    chunker: Callable[[], Chunker]

    async def batches(self, lines: Iterable[ParsedLine], principal: Principal) -> AsyncIterator[Batch]:
        """The documents, each followed by its chunks, which replace the chunks that it has, in the same write.

        A line that is a chunk itself is left as it is. A chunk has the number of the line of its document.
        """
        remaining = iter(lines)
        in_this_write: set[DocId] = set()
        while batch := await anyio.to_thread.run_sync(self._next, remaining):
            documents = [line.document for line in batch if isinstance(line, ValidLine)]
            parents = [document for document in documents if document.parent_id is None]
            identities = set(map(_identity, parents))
            if identities & in_this_write:  # the chunks that are replaced have to be known
                yield Batch((), ends_write=True)
                in_this_write.clear()
            in_this_write |= identities
            yield Batch(batch, await stale_chunks(self.lookup, documents, parents, principal))

    def _next(self, lines: Iterator[ParsedLine]) -> list[ParsedLine]:
        """The next lines with their chunks: about as many as are encoded together. Blocks."""
        groups: list[list[ParsedLine]] = []
        last: dict[DocId, int] = {}
        count = size = 0
        for line in lines:
            group = [line]
            if isinstance(line, ValidLine):
                group = self._split(line)
                size += sum(size_bytes(each.document) for each in group if isinstance(each, ValidLine))
                if (before := last.get(identity := _identity(line.document))) is not None:
                    del groups[before][1:]  # chunks of a text that this line replaces
                last[identity] = len(groups)
            groups.append(group)
            count += len(group)
            if count >= MAX_BATCH_DOCUMENTS or size >= MAX_BATCH_BYTES:
                break
        return [line for group in groups for line in group]

    def _split(self, line: ValidLine) -> list[ParsedLine]:
        """The document of a line and its chunks; an invalid line if they are too large."""
        try:
            return [ValidLine(line.line, document) for document in self.chunker().chunked(line.document)]
        except ValueError as error:
            return [InvalidLine(line.line, str(error))]


async def stale_chunks(
    lookup: DocumentLookup, documents: Iterable[Document], parents: Collection[Document], principal: Principal
) -> Sequence[Key]:
    """The chunks that some parents have and that are not among the documents that are written."""
    kept = set(map(_identity, documents))
    chunks = await lookup.chunks_beside(parents, principal)
    return [chunk.key for chunk in chunks if chunk.doc_id not in kept]


def _identity(document: Document) -> DocId:
    return doc_id(document.id, document.collection)
