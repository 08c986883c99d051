"""Fixtures for tests of the document service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.engine import EmbeddedIndex
from orchestrator.service.documents import DocumentService
from tests.orchestrator.service.document_helpers import service_of


@pytest.fixture
def index(open_index: Callable[[], EmbeddedIndex]) -> EmbeddedIndex:
    return open_index()


@pytest.fixture
def service(index: EmbeddedIndex, tmp_path: Path) -> DocumentService:
    return service_of(index, tmp_path / "metadata-keys")
