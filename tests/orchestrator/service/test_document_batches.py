"""Documents are indexed in batches, so that memory is bounded whatever the size of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from adapters import Document, Sensitivity, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from orchestrator.indexing import pipeline as pipeline_module
from orchestrator.indexing.ndjson import ParsedLine, ValidLine
from orchestrator.schema.documents import LineOutcome
from orchestrator.service import line_writer
from orchestrator.service.documents import DocumentService
from tests.orchestrator.service.document_helpers import (
    WRITER,
    FixedWriter,
    ignore,
    key,
    lines,
    put,
    stored,
    with_writer,
)

pytestmark = pytest.mark.anyio


async def test_memory_does_not_grow_with_the_input(
    service: DocumentService, index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "MAX_BATCH_DOCUMENTS", 4)
    monkeypatch.setattr(line_writer, "MAX_WRITE_DOCUMENTS", 8)
    read = 0
    encoded: list[int] = []

    def many() -> Iterator[ParsedLine]:
        nonlocal read
        for number in range(30):
            read += 1
            assert read - index.current().segments.count <= 8
            yield ValidLine(number + 1, Document(id=str(number), text="x"))

    report = await service.index(many(), WRITER, ignore, encoded.append)
    assert (report.indexed, report.generation) == (30, 4)
    assert encoded == [4, 4, 4, 4, 4, 4, 4, 2]


async def test_large_documents_are_written_in_smaller_batches(
    service: DocumentService, index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (line_writer, pipeline_module):
        monkeypatch.setattr(module, "MAX_BATCH_BYTES", 1_000)
    given = (ValidLine(n, Document(id=str(n), text="x" * 600)) for n in range(9))
    report = await service.index(given, WRITER, ignore)
    assert (report.indexed, index.current().segments.count) == (9, 9)
    assert report.generation == 5


async def test_a_failed_batch_leaves_the_ones_before_it(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "MAX_BATCH_DOCUMENTS", 2)
    monkeypatch.setattr(line_writer, "MAX_WRITE_DOCUMENTS", 2)
    writes = 0

    class Failing:
        async def write(
            self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], clearance: Sensitivity = "restricted"
        ) -> Acknowledgement:
            nonlocal writes
            writes += 1
            if writes == 2:
                raise Unavailable("the disk is full")
            return await service.lines.writer.write(upserts, deletes, clearance)

    failing = with_writer(service, Failing())
    with pytest.raises(Unavailable, match="the disk is full"):
        await failing.index(lines(*(Document(id=str(n), text="x") for n in range(6))), WRITER, ignore)
    assert set(await stored(service, *"012345")) == {"0", "1"}


async def test_the_newest_acknowledgement_says_what_is_pending_and_every_one_what_was_refused(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "MAX_BATCH_DOCUMENTS", 1)
    monkeypatch.setattr(line_writer, "MAX_WRITE_DOCUMENTS", 1)
    writer = FixedWriter(Acknowledgement(7, {"keyword": "away"}, {key("a"): {"graph": "no"}}), Acknowledgement(8))
    outcome = await put(with_writer(service, writer), Document(id="a", text="x"), Document(id="b", text="x"))
    assert outcome.lines == (
        LineOutcome(1, "incomplete", id="a", missing={"graph": "no"}),
        LineOutcome(2, "indexed", id="b"),
    )
    assert outcome.generation == 8
