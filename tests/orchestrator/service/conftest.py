"""Fixtures for tests of the document service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.engine import EmbeddedIndex
from adapters.graph.names import mentioned
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.service.admission import Admission
from orchestrator.service.documents import DocumentService
from orchestrator.service.line_writer import LineWriter
from tests.orchestrator.service.document_helpers import Encoder, Words


@pytest.fixture
def index(open_index: Callable[[], EmbeddedIndex]) -> EmbeddedIndex:
    return open_index()


@pytest.fixture
def service(index: EmbeddedIndex, tmp_path: Path) -> DocumentService:
    return DocumentService(
        documents=index,
        lines=LineWriter(index, MetadataKeys(tmp_path / "metadata-keys"), IndexingPipeline(Encoder(), mentioned)),
        reads=Admission(10, 10),
        uploads=defaultdict(lambda: Admission(10, 10)),
        writes=Admission(10, 10),
        deletes=Admission(10, 10),
        is_current=lambda: True,
        generation=index.generation,
        write_timeout_s=30.0,
        chunker=lambda: Chunker(Words(3), 3),
    )
