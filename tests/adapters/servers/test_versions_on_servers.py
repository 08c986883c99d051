"""Versions and refused documents, with a real OpenSearch and a real Neo4j."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import time_ns

import pytest

from adapters import VersionConflict
from adapters.model.document import Record
from fusion.columns import Documents
from orchestrator.indexing.log import write_log
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replication import Replication
from tests.adapters.source_fixtures import source_under_test
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key

pytestmark = [pytest.mark.anyio, pytest.mark.server]

VERSIONED = pytest.mark.parametrize("name", ["opensearch", "memgraph"])
HOUR_NS = 3_600 * 10**9


@VERSIONED
async def test_a_conflict_has_the_newer_versions_and_the_other_documents_are_written(
    name: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    async with source_under_test(name, tmp_path, server_url) as subject:
        replica = subject.source
        await replica.apply(10, [vector_record("a"), vector_record("b")], [])
        await replica.apply(20, [vector_record("b")], [])
        with pytest.raises(VersionConflict) as raised:
            await replica.apply(5, [vector_record(id_) for id_ in "abc"], [key("d")])
        assert raised.value.versions == {10, 20}
        assert await replica.count() == 3
        with pytest.raises(VersionConflict) as raised:
            await replica.apply(15, [], [key("a"), key("b")])
        assert raised.value.versions == {20}
        assert await replica.count() == 2
        await replica.apply(20, [vector_record("b")], [])  # the same write again


@VERSIONED
async def test_a_new_data_folder_whose_clock_is_an_hour_back_loses_no_write(
    name: str, tmp_path: Path, server_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with source_under_test(name, tmp_path, server_url) as subject:
        documents = MemoryReplica()

        def opened(folder: str) -> Replication:
            log = WriteLog(tmp_path / folder, 2**30)
            return Replication(log, {"memory": documents, name: subject.source}, "memory", documents, "test-1")

        await opened("ahead").write([vector_record(id_, "old") for id_ in "abc"], [])
        monkeypatch.setattr(write_log, "time_ns", lambda: time_ns() - HOUR_NS)
        acknowledgement = await opened("behind").write([vector_record("d", "new")], [key("a"), key("b"), key("c")])
        assert (acknowledgement.pending, acknowledgement.rejected) == ({}, {})
        assert await subject.source.count() == 1


@pytest.mark.filterwarnings("ignore:Sending a large body")
@pytest.mark.parametrize("count", [1, 2, 9])
async def test_documents_that_opensearch_refuses_hold_up_no_other_write(
    tmp_path: Path, server_url: Callable[[str], str], count: int
) -> None:
    """A value of 40,000 bytes is an immense term. The edges refuse it, so it is written without them."""
    async with source_under_test("opensearch", tmp_path, server_url) as subject:
        keyword = subject.source
        replication = Replication(WriteLog(tmp_path / "log", 2**30), {"keyword": keyword}, "keyword", keyword, "test-1")
        immense = [vector_record(str(n), metadata={"k" * 40_000: "v"}) for n in range(count)]
        acknowledgement = await replication.write(immense, [])
        assert acknowledgement.pending == {}
        assert set(acknowledgement.rejected) == {key(str(n)) for n in range(count)}
        acknowledgement = await replication.write([vector_record("after")], [])
        assert (acknowledgement.pending, acknowledgement.rejected) == ({}, {})
        assert await keyword.count() == 1  # the probe is deleted
        assert len(replication.refused()) == count
        assert await replication.retry_refused() == 0
        await replication.write([vector_record("0", "small enough")], [])
        assert len(replication.refused()) == count - 1
        stored: Record = (await keyword.fetch(SCOPE, Documents.of_ids(["0"])))["0"]
        assert stored.document.text == "small enough"
