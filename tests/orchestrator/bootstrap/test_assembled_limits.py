"""The limits of an opened service, by their effect: each test fails if the limit is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module

import anyio
import pytest
from msgspec import structs

from adapters import Document, Scope, Unavailable
from adapters.ports import SourceQuery, VectorRecord
from fusion.columns import Ranking
from orchestrator.auth.principal import Principal
from orchestrator.bootstrap import open_service
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.ndjson import ParsedLine, ValidLine
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.schema.operations import CacheLevel
from orchestrator.service.errors import Overloaded
from orchestrator.settings import Settings
from tests.conftest import SCOPE
from tests.orchestrator.bootstrap.fake_server import FakeServer, OpenService
from tests.orchestrator.bootstrap.helpers import ALPHA, BETA, index, respond, search

pytestmark = pytest.mark.anyio
assembly = import_module("orchestrator.bootstrap.assembly")
bootstrap_writing = import_module("orchestrator.bootstrap.writing")
"""The module; its package exports the function of the same name."""


async def test_the_number_of_waiting_searches_is_limited(
    opened: OpenService, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "_MAX_WAITING", 1)
    release = anyio.Event()
    inner = server.search

    async def gated(query: SourceQuery) -> Ranking:
        await release.wait()
        return await inner(query)

    server.search = gated  # type: ignore[method-assign]
    async with opened(search_concurrency=1) as service, anyio.create_task_group() as group:
        await index(service, [ALPHA, BETA])
        for number in range(2):  # one is computed, one waits
            group.start_soon(respond, service, f"alpha {number}")
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(Overloaded):
            await respond(service, "alpha too many")
        release.set()


async def test_searches_that_arrive_together_are_admitted_or_rejected_before_the_first_is_computed(
    chosen: Settings,
) -> None:
    """Nothing of an embedded search waits: it must not run to its end while the others are still in their sockets."""
    async with open_service(chosen) as service:
        await index(service, [ALPHA, BETA])
        await respond(service, "alpha")  # reads what later searches have in memory
        service.search.admission._service_time_s = 3_600
        outcomes = await asyncio.gather(
            *(respond(service, f"alpha {number}") for number in range(5)), return_exceptions=True
        )
        rejected = [outcome for outcome in outcomes if isinstance(outcome, Overloaded)]
        assert not isinstance(outcomes[0], BaseException)
        assert len(rejected) == 4


async def test_the_bodies_that_a_tenant_has_in_memory_are_limited(
    opened: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap_writing, "_MAX_UPLOADS", 2)
    monkeypatch.setattr(bootstrap_writing, "_MAX_WAITING_WRITES", 1)
    release = anyio.Event()
    reading: list[str] = []

    async with opened() as service, anyio.create_task_group() as group:
        other = replace(service.anonymous, name="other", scope=Scope("other", "default"))

        async def put(id_: str, principal: Principal = service.anonymous) -> None:
            async def read() -> Iterable[ParsedLine]:
                reading.append(id_)
                await release.wait()
                return [ValidLine(1, ALPHA)]

            await service.documents.put(read, principal)

        for id_ in "abc":
            group.start_soon(put, id_)
            await anyio.wait_all_tasks_blocked()
        assert reading == ["a", "b"]
        with pytest.raises(Overloaded):
            await put("d")
        group.start_soon(put, "e", other)
        await anyio.wait_all_tasks_blocked()
        assert reading == ["a", "b", "e"]
        release.set()


async def test_the_numbers_of_concurrent_and_waiting_writes_are_limited(
    opened: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap_writing, "_MAX_WRITES", 2)
    monkeypatch.setattr(bootstrap_writing, "_MAX_WAITING_WRITES", 1)
    release = anyio.Event()
    writing: list[str] = []
    prepare = IndexingPipeline.prepare

    async def gated(pipeline: IndexingPipeline, documents: list[Document], scope: Scope) -> Sequence[VectorRecord]:
        writing.append(scope.tenant)
        await release.wait()
        return await prepare(pipeline, documents, scope)

    monkeypatch.setattr(IndexingPipeline, "prepare", gated)
    async with opened() as service, anyio.create_task_group() as group:

        async def put(tenant: str) -> None:
            async def read() -> Iterable[ParsedLine]:
                return [ValidLine(1, ALPHA)]

            await service.documents.put(read, replace(service.anonymous, scope=Scope(tenant, "default")))

        for tenant in "abc":
            group.start_soon(put, tenant)
            await anyio.wait_all_tasks_blocked()
        assert writing == ["a", "b"]
        with pytest.raises(Overloaded):
            await put("d")
        release.set()
    assert writing == ["a", "b", "c"]


async def test_the_numbers_of_concurrent_and_waiting_reads_are_limited(
    opened: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap_writing, "_MAX_READS", 1)
    monkeypatch.setattr(bootstrap_writing, "_MAX_WAITING", 0)
    async with opened() as service:
        await index(service, [ALPHA])
        async with service.documents.reads.slot("another", 1.0):
            with pytest.raises(Overloaded):
                await service.documents.get("a", service.anonymous)
        assert (await service.documents.get("a", service.anonymous)).text == ALPHA.text


async def test_documents_are_not_read_from_a_replica_that_lacks_a_write(opened: OpenService, chosen: Settings) -> None:
    async with opened() as service:
        await index(service, [ALPHA])
        (record,) = await service.documents.lines.pipeline.prepare([BETA], SCOPE)
        WriteLog(chosen.storage.data_dir / "write-log", 2**30).append(Write.of([record], []), ["embedded"])
        with pytest.raises(Unavailable, match="does not have all writes yet"):
            await service.documents.get("a", service.anonymous)
        await service.maintenance.apply_unapplied()
        assert (await service.documents.get("b", service.anonymous)).text == BETA.text


async def test_the_names_of_the_collections_are_read_once_after_each_write(
    opened: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        await index(service, [ALPHA])
        view = type(service.health.embedded.index.current())  # type: ignore[union-attr]
        counted: list[str] = []
        counts = view.counts

        async def recorded(self: object, field: str, condition: object) -> object:
            counted.append(field)
            return await counts(self, field, condition)

        monkeypatch.setattr(view, "counts", recorded)
        for text in ("alpha", "star", "light"):
            await search(service, text, mode="hybrid")
        assert counted == ["collection"]
        await index(service, [BETA])
        await search(service, "alpha", mode="hybrid")
        assert counted == ["collection", "collection"]


async def test_the_counters_of_every_cache_are_reported(opened: OpenService) -> None:
    async with opened() as service:
        await index(service, [ALPHA, BETA])
        levels = service.search.cache.levels
        stats = levels.l1.stats
        for limit in (1, 2, 1):
            await respond(service, "alpha", mode="keyword", limit=limit)
        stats.stale, stats.evictions, stats.errors, stats.skipped, stats.age_s = 2, 3, 4, 5, 6.0
        levels.single_flight.coalesced = 7
        report = service.cache_report()
        assert report.levels["l1"] == CacheLevel(
            hits=1,
            misses=2,
            entries=2,
            bytes=levels.l1.size_bytes,
            stale=2,
            stored=2,
            evictions=3,
            errors=4,
            skipped=5,
            mean_age_s=stats.mean_age_s,
            hit_rate=stats.hit_rate,
        )
        assert levels.l1.size_bytes > 0
        assert stats.mean_age_s > 0
        assert 0 < stats.hit_rate < 1
        assert report.levels["keyword"] == CacheLevel(hits=1, misses=1, entries=1)
        assert report.levels["collections"] == CacheLevel(hits=1, misses=1, entries=1)
        assert (report.flights, report.joined) == (0, 7)
        assert "l2" not in report.levels


async def test_the_embedded_documents_decide_what_a_writer_may_replace(opened: OpenService) -> None:
    """One source is on a server, the documents are embedded; the server waits for the decision."""
    async with opened() as service:
        protected = [ValidLine(1, structs.replace(ALPHA, sensitivity="restricted"))]
        owner = replace(service.anonymous, clearance="restricted")
        await service.documents.index(protected, owner, lambda _: None)
        writer = replace(service.anonymous, clearance="normal")

        async def read() -> Iterable[ParsedLine]:
            return [ValidLine(1, structs.replace(ALPHA, text="stolen")), ValidLine(2, BETA)]

        outcome = await service.documents.put(read, writer)
        assert [line.status for line in outcome.lines] == ["rejected", "indexed"]
        everyone = replace(service.anonymous, clearance="restricted")
        assert (await service.documents.get("a", everyone)).text == ALPHA.text
