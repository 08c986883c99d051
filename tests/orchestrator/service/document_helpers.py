"""Shortcuts for tests of the document service."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from adapters import Document, Scope, Sensitivity
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.graph.names import mentioned
from adapters.keyword.component import KeywordComponent
from adapters.model.batching import batches
from adapters.ports import DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from adapters.vector.embedded import VectorComponent
from fusion.columns import Documents
from orchestrator.auth.principal import Principal
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.schema.documents import BulkResponse
from orchestrator.service.admission import Admission
from orchestrator.service.documents import ChunkHandling, DocumentService
from orchestrator.service.line_writer import LineWriter
from tests.conftest import SCOPE, unit

WRITER = Principal("writer", SCOPE, "restricted", "admin")


class Encoder:
    """A direction for each length of a text: these tests are not about meaning."""

    identity, dimension = "test", 16
    encodes_texts = True

    def encode_documents(self, documents: Sequence[Document]) -> list[NDArray[np.float32]]:
        return [unit(len(each.text))[np.newaxis] for each in documents]


class Words:
    """Splits texts into passages of a number of words."""

    def __init__(self, count: int) -> None:
        self._count = count

    def fits(self, text: str) -> bool:
        return len(text.split()) <= self._count

    def split(self, text: str, is_markdown: bool = True) -> list[tuple[int, int]]:
        found = list(re.finditer(r"\S+", text))
        return [(part[0].start(), part[-1].end()) for part in batches(found, self._count)]

    def around(self, text: str, start: int, end: int) -> tuple[str, str]:
        return " ".join(text[:start].split()[-1:]), " ".join(text[end:].split()[:1])


class FixedWriter:
    """Acknowledges with the given acknowledgements, one after the other."""

    def __init__(self, *acknowledgements: Acknowledgement) -> None:
        self._acknowledgements = list(acknowledgements)

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], clearance: Sensitivity = "restricted"
    ) -> Acknowledgement:
        return self._acknowledgements.pop(0)


def service_of(index: EmbeddedIndex, metadata_keys: Path) -> DocumentService:
    return DocumentService(
        documents=index,
        lines=LineWriter(index, MetadataKeys(metadata_keys), IndexingPipeline(Encoder(), mentioned)),
        reads=Admission(10, 10),
        uploads=defaultdict(lambda: Admission(10, 10)),
        writes=Admission(10, 10),
        deletes=Admission(10, 10),
        is_current=lambda: True,
        generation=index.generation,
        write_timeout_s=30.0,
        chunker=lambda: Chunker(Words(3), 3),
    )


def service_in(folder: Path) -> DocumentService:
    """The documents of a new index."""
    components = (VectorComponent(), KeywordComponent(), GraphComponent())
    return service_of(EmbeddedIndex(folder, components, "test-1"), folder / "metadata-keys")


def with_writer(service: DocumentService, writer: DocumentWriter) -> DocumentService:
    return replace(service, lines=replace(service.lines, writer=writer))


def admin(clearance: Sensitivity, scope: Scope = SCOPE) -> Principal:
    return Principal("writer", scope, clearance, "admin")


def lines(*documents: Document) -> list[ParsedLine]:
    return [ValidLine(number, document) for number, document in enumerate(documents, start=1)]


async def put(
    service: DocumentService,
    *documents: Document,
    by: Principal = WRITER,
    chunks: ChunkHandling | None = None,
    more: Sequence[ParsedLine] = (),
) -> BulkResponse:
    async def read() -> list[ParsedLine]:
        return [*lines(*documents), *more]

    return await service.put(read, by, chunks)


async def stored(service: DocumentService, *ids: str, scope: Scope = SCOPE) -> dict[str, str]:
    """The texts, whatever their sensitivity."""
    return {
        id_: record.document.text
        for id_, record in (await service.documents.fetch(scope, Documents.of_ids(ids))).items()
    }


def ignore(line: InvalidLine) -> None:
    pytest.fail(line.error)


def key(id_: str) -> Key:
    return SCOPE.tenant, SCOPE.environment, id_
