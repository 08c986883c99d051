"""Documents: who may replace, read and delete which, and what an outcome says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import anyio
import pytest

from adapters import SENSITIVITIES, Document, Record, Scope, Sensitivity, TimedOut, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.ports import VectorRecord
from adapters.ports.writer import Acknowledgement
from fusion.columns import Documents
from orchestrator.auth.principal import Forbidden, Principal
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import DeleteResponse, LineOutcome
from orchestrator.service import document_reports
from orchestrator.service import documents as documents_module
from orchestrator.service.admission import Admission
from orchestrator.service.documents import DocumentService
from orchestrator.service.errors import NotFound, Overloaded
from tests.conftest import SCOPE
from tests.orchestrator.service.document_helpers import (
    WRITER,
    FixedWriter,
    admin,
    ignore,
    key,
    lines,
    put,
    stored,
    with_writer,
)

pytestmark = pytest.mark.anyio

READER = Principal("reader", SCOPE, "restricted", "reader")


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("clearance", SENSITIVITIES)
async def test_a_principal_reads_replaces_and_deletes_what_it_may_see_and_nothing_else(
    service: DocumentService, sensitivity: Sensitivity, clearance: Sensitivity
) -> None:
    await put(service, Document(id="a", text="old", sensitivity=sensitivity))
    principal, is_visible = admin(clearance), SENSITIVITIES.index(sensitivity) <= SENSITIVITIES.index(clearance)

    if is_visible:
        assert (await service.get("a", principal)).text == "old"
    else:
        with pytest.raises(NotFound, match="no document 'a'"):
            await service.get("a", principal)
    assert set(await service.get_many(["a", "b"], principal)) == ({"a"} if is_visible else set())
    counts = (await service.collections(principal)).collections
    assert [(each.name, each.documents) for each in counts] == ([("documents", 1)] if is_visible else [])

    outcome = await put(service, Document(id="a", text="new", sensitivity=sensitivity), by=principal)
    assert (outcome.indexed, outcome.rejected) == ((1, 0) if is_visible else (0, 1))
    assert await stored(service, "a") == {"a": "new" if is_visible else "old"}

    deleted = await service.delete("a", principal)
    assert deleted.deleted is is_visible
    assert await stored(service, "a") == ({} if is_visible else {"a": "old"})


async def test_a_refused_line_says_why_and_nothing_about_the_document(service: DocumentService) -> None:
    await put(service, Document(id="a", text="s3cret", sensitivity="restricted", title="s3cret"))
    outcome = await put(service, Document(id="a", text="x"), Document(id="b", text="y"), by=admin("normal"))
    error = "id: 'a' is taken by a document that you may not see"
    assert outcome.lines == (LineOutcome(1, "rejected", error=error), LineOutcome(2, "indexed", id="b"))
    assert (outcome.indexed, outcome.incomplete, outcome.rejected) == (1, 0, 1)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("clearance", SENSITIVITIES)
async def test_a_principal_writes_what_it_may_see_afterwards(
    service: DocumentService, sensitivity: Sensitivity, clearance: Sensitivity
) -> None:
    """Otherwise ids could be taken for ever by documents that their own writer can neither see nor delete."""
    allowed = SENSITIVITIES[: SENSITIVITIES.index(clearance) + 1]
    document = Document(id="a", text="x", sensitivity=sensitivity)
    (line,) = (await put(service, document, by=admin(clearance))).lines
    if sensitivity in allowed:
        assert line == LineOutcome(1, "indexed", id="a")
    else:
        error = f"sensitivity: {sensitivity!r} is above your clearance, allowed are {', '.join(allowed)}"
        assert line == LineOutcome(1, "rejected", error=f"{error}")
    assert set(await stored(service, "a")) == ({"a"} if sensitivity in allowed else set())


async def test_the_same_id_of_another_scope_is_another_document(service: DocumentService) -> None:
    other = admin("restricted", Scope("other"))
    await put(service, Document(id="a", text="first", sensitivity="restricted"))
    assert (await put(service, Document(id="a", text="second"), by=replace(other, clearance="normal"))).indexed == 1
    assert (await service.get("a", other)).text == "second"
    assert (await service.delete("a", other)).deleted
    assert await stored(service, "a") == {"a": "first"}


async def test_only_an_administrator_writes(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"))
    for role in ("none", "reader"):
        principal = replace(READER, role=role)
        with pytest.raises(Forbidden, match=f"has the role '{role}', this needs 'admin'"):
            await put(service, Document(id="b", text="x"), by=principal)
        with pytest.raises(Forbidden):
            await service.index(lines(Document(id="b", text="x")), principal, ignore)
        with pytest.raises(Forbidden):
            await service.delete("a", principal)
    assert await stored(service, "a", "b") == {"a": "x"}
    assert (await service.get("a", READER)).text == "x"


async def test_deleting_twice_is_no_error_and_writes_once(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"))
    assert await service.delete("a", WRITER) == DeleteResponse("a", True, 2)
    assert await service.delete("a", WRITER) == DeleteResponse("a", False, 2)
    assert await service.delete("never", WRITER) == DeleteResponse("never", False, 2)
    assert service.generation() == 2


async def test_indexing_again_changes_nothing_but_the_generation(
    service: DocumentService, index: EmbeddedIndex
) -> None:
    documents = [Document(id=str(n), text=f"text {n}") for n in range(5)]
    assert (await put(service, *documents)).generation == 1
    assert (await put(service, *documents)).generation == 2
    assert index.current().segments.count == 5


async def test_nothing_to_index_writes_nothing(service: DocumentService, index: EmbeddedIndex) -> None:
    await put(service, Document(id="a", text="x"))
    with pytest.raises(BadRequest, match="no documents"):
        await service.index([], WRITER, ignore)
    report = await service.index([InvalidLine(1, "no")], WRITER, lambda _: None)
    assert (report.indexed, report.generation) == (0, 0)

    async def invalid() -> Iterable[ParsedLine]:
        return [InvalidLine(1, "no")]

    outcome = await service.put(invalid, WRITER)
    assert (outcome.indexed, outcome.rejected, outcome.generation) == (0, 1, 1)
    assert index.generation() == 1


async def test_valid_lines_are_indexed_and_invalid_ones_reported_in_order(service: DocumentService) -> None:
    await put(service, Document(id="hidden", text="x", sensitivity="restricted"))
    given: list[ParsedLine] = [
        InvalidLine(1, "one"),
        ValidLine(2, Document(id="a", text="x")),
        ValidLine(3, Document(id="hidden", text="y")),
        InvalidLine(4, "four"),
        ValidLine(5, Document(id="b", text="x")),
    ]
    invalid: list[InvalidLine] = []
    report = await service.index(given, admin("normal"), invalid.append)
    assert report.indexed == 2
    assert [line.line for line in invalid] == [1, 3, 4]
    assert await stored(service, "a", "b", "hidden") == {"a": "x", "b": "x", "hidden": "x"}


async def test_of_two_lines_with_one_id_the_last_one_counts(service: DocumentService) -> None:
    await put(service, Document(id="a", text="1"), Document(id="a", text="2"))
    assert await stored(service, "a") == {"a": "2"}


async def test_a_replica_that_lacks_a_write_or_refuses_a_document_makes_the_line_incomplete(
    service: DocumentService,
) -> None:
    refused = Acknowledgement(7, {}, {key("b"): {"graph": "no"}, ("other", "default", "a"): {"graph": "no"}})
    outcome = await put(
        with_writer(service, FixedWriter(refused)), Document(id="a", text="x"), Document(id="b", text="x")
    )
    assert outcome.lines == (
        LineOutcome(1, "indexed", id="a"),
        LineOutcome(2, "incomplete", id="b", missing={"graph": "no"}),
    )
    assert (outcome.indexed, outcome.incomplete, outcome.rejected, outcome.generation) == (1, 1, 0, 7)
    pending = Acknowledgement(8, {"keyword": "away"}, {key("b"): {"graph": "no"}})
    outcome = await put(
        with_writer(service, FixedWriter(pending)), Document(id="a", text="x"), Document(id="b", text="x")
    )
    assert [dict(line.missing) for line in outcome.lines] == [{"keyword": "away"}, {"keyword": "away", "graph": "no"}]


async def test_a_delete_reports_the_replicas_that_lack_it(service: DocumentService) -> None:
    await put(service, Document(id="a", text="x"))
    writer = FixedWriter(Acknowledgement(7, {"keyword": "away"}))
    deleted = await with_writer(service, writer).delete("a", WRITER)
    assert deleted == DeleteResponse("a", True, 7, {"keyword": "away"})


async def test_nothing_is_decided_by_documents_that_may_be_outdated(service: DocumentService) -> None:
    """Otherwise one could be read whose newest version is hidden."""
    await put(service, Document(id="a", text="x"))
    outdated = replace(service, is_current=lambda: False)
    for use in (outdated.get("a", WRITER), outdated.get_many(["a"], WRITER)):
        with pytest.raises(Unavailable, match="does not have all writes yet: try again soon"):
            await use


async def test_writes_go_on_while_the_documents_cannot_be_read(service: DocumentService) -> None:
    away = {"documents": "away"}
    undecided = [Acknowledgement(generation, away, hidden=None) for generation in (7, 8)]
    outdated = with_writer(replace(service, is_current=lambda: False), FixedWriter(*undecided))
    outcome = await put(outdated, Document(id="a", text="y"), by=admin("normal"))
    assert outcome.lines == (LineOutcome(1, "pending", id="a", missing=away),)
    assert (outcome.indexed, outcome.pending, outcome.incomplete, outcome.generation) == (0, 1, 0, 7)
    assert await outdated.delete("a", admin("normal")) == DeleteResponse("a", None, 8, away)
    outdated = with_writer(service, FixedWriter(Acknowledgement(9, hidden=None)))
    report = await outdated.index(lines(Document(id="a", text="y")), admin("normal"), ignore)
    assert (report.indexed, report.undecided) == (0, {key("a")})


async def test_a_document_that_is_protected_while_another_is_encoded_is_not_replaced(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = IndexingPipeline.prepare

    async def protect_first(
        pipeline: IndexingPipeline, documents: list[Document], scope: Scope
    ) -> Sequence[VectorRecord]:
        prepared = await prepare(pipeline, documents, scope)
        if documents[0].text == "y":
            await put(service, Document(id="a", text="protected", sensitivity="restricted"))
        return prepared

    monkeypatch.setattr(IndexingPipeline, "prepare", protect_first)
    outcome = await put(service, Document(id="a", text="y"), by=admin("normal"))
    assert (outcome.indexed, outcome.rejected) == (0, 1)
    assert await stored(service, "a") == {"a": "protected"}


async def test_slow_uploads_delay_no_other_tenant_and_are_few_at_once(service: DocumentService) -> None:
    limited = replace(service, uploads=defaultdict(lambda: Admission(1, 10)), writes=Admission(1, 10))
    first_reads, release = asyncio.Event(), asyncio.Event()
    read: list[str] = []

    async def read_first() -> Iterable[ParsedLine]:
        first_reads.set()
        await release.wait()
        return lines(Document(id="a", text="1"))

    async def read_second() -> Iterable[ParsedLine]:
        read.append("second")
        return lines(Document(id="a", text="2"))

    async with asyncio.TaskGroup() as group:
        group.create_task(limited.put(read_first, WRITER))
        await first_reads.wait()
        second = group.create_task(limited.put(read_second, WRITER))
        await anyio.wait_all_tasks_blocked()
        other = Principal("other", Scope("other", "test"), "normal", "admin")
        async with asyncio.timeout(5):
            assert (await put(limited, Document(id="b", text="x"), by=other)).indexed == 1
            assert (await limited.delete("b", other)).deleted
            assert (await limited.delete("c", WRITER)).deleted is False
        assert read == []
        release.set()
        assert (await second).indexed == 1
    assert await stored(service, "a") == {"a": "2"}


async def test_a_thousand_rejected_lines_are_listed_and_the_others_counted(service: DocumentService) -> None:
    rejected: list[ParsedLine] = [InvalidLine(number, "no") for number in range(1, 3_001)]

    async def read() -> list[ParsedLine]:
        return [*rejected, ValidLine(3_001, Document(id="a", text="x"))]

    outcome = await service.put(read, WRITER)
    assert (outcome.indexed, outcome.rejected, outcome.unlisted) == (1, 3_000, 2_000)
    assert [line.line for line in outcome.lines] == [*range(1, 1_001), 3_001]


async def test_too_many_waiting_writes_are_refused(service: DocumentService) -> None:
    limited = replace(service, writes=Admission(1, 0), deletes=Admission(1, 0))
    async with limited.writes.slot("another", 1.0), limited.deletes.slot("another", 1.0):
        with pytest.raises(Overloaded):
            await put(limited, Document(id="a", text="x"))
        with pytest.raises(Overloaded):
            await limited.delete("a", WRITER)
    assert (await put(limited, Document(id="a", text="x"))).indexed == 1


async def test_reading_has_a_slot_and_a_time_limit(service: DocumentService, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stalled:
        async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
            await asyncio.Event().wait()
            return {}

        async def counts(self, field: str, condition: object) -> Mapping[str, int]:
            await asyncio.Event().wait()
            return {}

    monkeypatch.setattr(documents_module, "READ_TIMEOUT_S", 0.01)
    stalled = replace(service, documents=Stalled())  # type: ignore[arg-type]
    for use in (stalled.get("a", READER), stalled.collections(READER)):
        with pytest.raises(TimedOut, match=r"the documents could not be read within 0\.01 s"):
            await use
    monkeypatch.undo()
    full = replace(service, reads=Admission(1, 0))
    async with full.reads.slot("another", 1.0):
        with pytest.raises(Overloaded):
            await full.get("a", READER)


async def test_collections_are_counted_within_the_scope_by_name(service: DocumentService) -> None:
    await put(
        service,
        Document(id="a", text="x", collection="notes"),
        Document(id="b", text="x", collection="notes"),
        Document(id="c", text="x", collection="memory"),
    )
    await put(service, Document(id="d", text="x", collection="memory"), by=admin("normal", Scope("other")))
    counts = (await service.collections(READER)).collections
    assert [(each.name, each.documents) for each in counts] == [("memory", 1), ("notes", 2)]


async def test_of_many_collections_the_largest_are_listed(
    service: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_reports, "MAX_LISTED_COLLECTIONS", 2)
    names = ("c", "b", "b", "d", "a")
    await put(service, *(Document(id=str(n), text="x", collection=name) for n, name in enumerate(names)))
    response = await service.collections(READER)
    assert [(each.name, each.documents) for each in response.collections] == [("a", 1), ("b", 2)]
    assert response.unlisted == 2
