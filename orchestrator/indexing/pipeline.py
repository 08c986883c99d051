"""Converts documents to records with entities and vectors, in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anyio.to_thread
from msgspec.structs import replace

from adapters import Document, Record, Scope
from adapters.model.document import passage, values_of
from adapters.model.index_terms import NUMBER_TERMS
from adapters.model.vectors import packed
from adapters.ports import DocumentEncoder, VectorRecord
from orchestrator.indexing.ndjson import TEXT_LISTS, TEXTS, ParsedLine, ValidLine

MAX_BATCH_DOCUMENTS = 256
"""Documents that are checked and encoded together."""
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of documents that are encoded, or written, together."""
MAX_WRITE_DOCUMENTS = 4_096
"""Maximum documents in one write: more need more memory and are lost in a crash; fewer make more commits."""
_TERM_BYTES = 64
"""Bytes of a term in memory, without the name of its field and its text."""
_NAMES = (*TEXT_LISTS, "neighbor_chunk_ids", "heading_path", "entities")
_NUMBER_BYTES = 32
"""Bytes of a number of a vector in memory, with its place in the list."""


class IndexingPipeline:
    """Prepares documents for the replicas.

    :param extract: the entities that a text mentions, for documents without entities.
    """

    def __init__(self, encoder: DocumentEncoder, extract: Callable[[str], tuple[str, ...]]) -> None:
        self._encoder = encoder
        self._extract = extract

    @property
    def encodes_texts(self) -> bool:
        """Whether documents need no vectors of their own."""
        return self._encoder.encodes_texts

    def vector_problem(self, document: Document) -> str:
        """Why a document has no vector that can be compared with the others; empty if it has one."""
        allowed = f"{self._encoder.dimension} numbers, as in the vectors of {self._encoder.identity}"
        if document.vector is not None:
            count = len(document.vector)
            return "" if count == self._encoder.dimension else f"vector: {count} numbers, allowed are {allowed}"
        return "" if self._encoder.encodes_texts else f"vector: missing, and nothing encodes texts; give {allowed}"

    async def prepare(self, documents: list[Document], scope: Scope) -> list[VectorRecord]:
        """Returns the records in the order of the documents. Runs in a thread."""
        return await anyio.to_thread.run_sync(self._prepare, documents, scope)

    def _prepare(self, documents: list[Document], scope: Scope) -> list[VectorRecord]:
        encoded = self._encoder.encode_documents(documents)
        return [
            VectorRecord(self._record(document, scope), vectors)
            for document, vectors in zip(documents, encoded, strict=True)
        ]

    def _record(self, document: Document, scope: Scope) -> Record:
        entities = document.entities if document.entities is not None else self._extract(passage(document))
        if document.vector is None:
            return Record(scope.tenant, scope.environment, document, entities)
        without = replace(document, vector=None)
        return Record(scope.tenant, scope.environment, without, entities, packed(document.vector))


def size_bytes(document: Document) -> int:
    """Approximate size in memory of a document and of its filter terms, each of which has the name of its field."""
    texts = sum(len(getattr(document, name)) for name in TEXTS)
    names = sum(_TERM_BYTES + len(each) for field in _NAMES for each in getattr(document, field) or ())
    links = sum(_TERM_BYTES + len(link.target) + len(link.type) for link in document.links)
    vector = len(document.vector or ()) * _NUMBER_BYTES
    return texts + names + links + vector + sum(_sizes_of_terms(document))


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
