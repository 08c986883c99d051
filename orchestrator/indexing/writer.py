"""The way into the stores: read, extract, encode, write; bounded in memory, whatever the size of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import anyio.to_thread

from adapters import Document, DocumentEncoder, Entry, Record, Scope, Writer
from adapters.document import passage
from adapters.port import Acknowledgement, Key

_ENCODED_AT_ONCE = 256
_WRITTEN_AT_ONCE = 4_096
_BYTES_AT_ONCE = 16 * 1024 * 1024
"""Documents, and bytes of them, between two writes: what a crash may lose of a bulk run, and what memory holds."""


@dataclass(slots=True)
class Progress:
    """A run so far: documents taken, and what :class:`adapters.port.Acknowledgement` says of them."""

    indexed: int = 0
    generation: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)
    refused: dict[Key, Mapping[str, str]] = field(default_factory=dict)

    def add(self, documents: int, acknowledged: Acknowledgement) -> None:
        """One batch more. What was missing may have been delivered since, so the newest word counts."""
        self.indexed += documents
        self.generation = acknowledged.generation
        self.missing = acknowledged.missing
        self.refused |= acknowledged.refused


class IndexWriter:
    """Takes documents to the stores.

    :param extract: what a text mentions, for documents that do not say so themselves.
    """

    def __init__(self, store: Writer, encoder: DocumentEncoder, extract: Callable[[str], tuple[str, ...]]) -> None:
        self._store = store
        self._encoder = encoder
        self._extract = extract

    async def index(
        self, documents: Iterable[Document], scope: Scope, on_progress: Callable[[int], None] = lambda _: None
    ) -> Progress:
        """Store all, in batches: each is on disk and searchable before the next is begun.

        The last of several documents with one id stands. May be run again from the start after a crash: documents
        are known by their id.

        :param on_progress: called with the number of documents that were encoded since the last call.
        """
        progress = Progress()
        entries: list[Entry] = []
        size = 0
        remaining = iter(documents)
        while batch := await anyio.to_thread.run_sync(_next, remaining):
            entries += await anyio.to_thread.run_sync(self._entries, batch, scope)
            on_progress(len(batch))
            size += sum(map(_size, batch))
            if len(entries) >= _WRITTEN_AT_ONCE or size >= _BYTES_AT_ONCE:
                progress.add(len(entries), await self._store.write(entries, ()))
                entries, size = [], 0
        if entries:
            progress.add(len(entries), await self._store.write(entries, ()))
        return progress

    async def delete(self, scope: Scope, ids: Iterable[str]) -> Acknowledgement:
        """Delete by id."""
        return await self._store.write((), [(scope.tenant, scope.environment, id_) for id_ in ids])

    def _entries(self, documents: list[Document], scope: Scope) -> list[Entry]:
        texts = [passage(document) for document in documents]
        vectors = self._encoder.encode_documents(texts)
        return [
            Entry(
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


def _next(documents: Iterator[Document]) -> list[Document]:
    """The next batch: so many documents, or fewer if they are large."""
    batch: list[Document] = []
    size = 0
    for document in islice(documents, _ENCODED_AT_ONCE):
        batch.append(document)
        size += _size(document)
        if size >= _BYTES_AT_ONCE:
            break
    return batch


def _size(document: Document) -> int:
    """What most of a document's memory is, roughly in bytes."""
    return len(document.text) + sum(len(str(value)) for value in document.metadata.values())
