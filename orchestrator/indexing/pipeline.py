"""Converts documents to records with entities and vectors, in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anyio.to_thread

from adapters import Document, Record, Scope
from adapters.model.document import encoded_texts, passage, values_of
from adapters.model.index_terms import NUMBER_TERMS
from adapters.ports import DocumentEncoder, VectorRecord
from orchestrator.indexing.ndjson import ParsedLine, ValidLine

MAX_BATCH_DOCUMENTS = 256
"""Documents that are checked and encoded together."""
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of documents that are encoded, or written, together."""
MAX_WRITE_DOCUMENTS = 4_096
"""Maximum documents in one write: more need more memory and are lost in a crash; fewer make more commits."""
_TERM_BYTES = 64
"""Bytes of a term in memory, without the name of its field and its text."""


class IndexingPipeline:
    """Prepares documents for the replicas.

    :param extract: the entities that a text mentions, for documents without entities.
    """

    def __init__(self, encoder: DocumentEncoder, extract: Callable[[str], tuple[str, ...]]) -> None:
        self._encoder = encoder
        self._extract = extract

    async def prepare(self, documents: list[Document], scope: Scope) -> list[VectorRecord]:
        """Returns the records in the order of the documents. Runs in a thread."""
        return await anyio.to_thread.run_sync(self._prepare, documents, scope)

    def _prepare(self, documents: list[Document], scope: Scope) -> list[VectorRecord]:
        texts, beginnings = zip(*map(encoded_texts, documents), strict=True)
        encoded = self._encoder.encode_documents(texts, beginnings)
        return [
            VectorRecord(
                Record(
                    scope.tenant,
                    scope.environment,
                    document,
                    document.entities if document.entities is not None else self._extract(passage(document)),
                ),
                vectors,
            )
            for document, vectors in zip(documents, encoded, strict=True)
        ]


def size_bytes(document: Document) -> int:
    """Approximate size in memory of a document and of its filter terms, each of which has the name of its field."""
    return len(document.title) + len(document.text) + sum(_sizes_of_terms(document))


def _sizes_of_terms(document: Document) -> Iterator[int]:
    for key, value in document.metadata.items():
        for each in values_of(value):
            size = _TERM_BYTES + len(key)
            yield size + len(each) if isinstance(each, str) else NUMBER_TERMS * size


def next_batch(lines: Iterator[ParsedLine]) -> list[ParsedLine]:
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
