"""From documents to records with entities and vectors, in batches of bounded memory, whatever the size of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anyio.to_thread

from adapters import Document, DocumentEncoder, Record, Scope, VectorRecord
from adapters.model.document import passage, values_of
from adapters.model.index_terms import NUMBER_TERMS

MAX_BATCH_DOCUMENTS = 256
"""Documents that are checked and encoded together."""
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of documents that are encoded, or written, together."""
MAX_WRITE_DOCUMENTS = 4_096
"""Documents in one write: more are in memory, and lost by a crash, than in smaller ones; fewer make more commits."""
_TERM_BYTES = 64
"""Of a term in memory, without the name of its field and a text."""


class IndexingPipeline:
    """Prepares documents for the replicas.

    :param extract: the entities that a text mentions, for documents without entities.
    """

    def __init__(self, encoder: DocumentEncoder, extract: Callable[[str], tuple[str, ...]]) -> None:
        self._encoder = encoder
        self._extract = extract

    async def prepare(self, documents: list[Document], scope: Scope) -> list[VectorRecord]:
        """Records in the order of the documents; in a thread."""
        return await anyio.to_thread.run_sync(self._prepare, documents, scope)

    def _prepare(self, documents: list[Document], scope: Scope) -> list[VectorRecord]:
        texts = [passage(document) for document in documents]
        vectors = self._encoder.encode_documents(texts)
        return [
            VectorRecord(
                Record(
                    scope.tenant,
                    scope.environment,
                    document,
                    document.entities if document.entities is not None else self._extract(text),
                ),
                vector,
            )
            for document, text, vector in zip(documents, texts, vectors, strict=True)
        ]


def size_bytes(document: Document) -> int:
    """Approximate size in memory of a document and of its filter terms, each of which has the name of its field."""
    return len(document.title) + len(document.text) + sum(_sizes_of_terms(document))


def _sizes_of_terms(document: Document) -> Iterator[int]:
    for key, value in document.metadata.items():
        for each in values_of(value):
            size = _TERM_BYTES + len(key)
            yield size + len(each) if isinstance(each, str) else NUMBER_TERMS * size
