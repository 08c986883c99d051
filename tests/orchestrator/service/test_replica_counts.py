"""Lost documents of a replica are noticed, and reported by searches and probes."""

from __future__ import annotations

from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from adapters import Unavailable
from adapters.vector.qdrant import QdrantVector
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replication import Replication
from orchestrator.service.replica_counts import ReplicaCounts
from tests.adapters.source_fixtures import LIMITS
from tests.conftest import DIMENSION, vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_replication

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:(Payload indexes|Local mode):UserWarning")]


async def filled(folder: Path) -> tuple[dict[str, MemoryReplica], Replication, ReplicaCounts]:
    """Two replicas with three documents."""
    replicas = {"one http://host": MemoryReplica(), "two http://host": MemoryReplica()}
    replication = open_replication(folder, replicas)
    await replication.write([vector_record(id_) for id_ in "abc"], [])
    return replicas, replication, ReplicaCounts(replication)


async def test_documents_that_a_replica_lost_are_reported_until_they_are_written_again(tmp_path: Path) -> None:
    replicas, replication, counts = await filled(tmp_path)
    await counts.check()
    await counts.check()
    assert counts.problems == {}
    replicas["two http://host"].records.clear()
    await counts.check()
    assert counts.problems == {}  # perhaps a write of another process is on its way
    await counts.check()
    assert counts.problems == {"two": "has 0 of 3 documents"}
    await replication.write([vector_record(id_) for id_ in "abc"], [])
    await counts.check()
    assert counts.problems == {}


async def test_the_replica_that_documents_are_read_from_may_be_the_one_that_lost_some(tmp_path: Path) -> None:
    replicas, _, counts = await filled(tmp_path)
    del replicas["one http://host"].records["a"]
    await counts.check()
    await counts.check()
    assert counts.problems == {"one": "has 2 of 3 documents"}


async def test_writes_that_wait_and_documents_that_were_refused_are_not_lost(tmp_path: Path) -> None:
    replicas, replication, counts = await filled(tmp_path)
    replicas["two http://host"].refused_ids = {"d"}
    replicas["one http://host"].refused_ids = {"c"}
    await replication.write([vector_record("d")], [key("c")])
    assert [len(each.records) for each in replicas.values()] == [4, 2]
    replicas["two http://host"].error = Unavailable("away")
    await replication.write([vector_record("e")], [])
    await counts.check()
    replicas["two http://host"].error = None
    await counts.check()
    await counts.check()
    assert counts.problems == {}


async def test_an_index_that_was_deleted_is_created_again_and_counts_as_empty(tmp_path: Path) -> None:
    client = AsyncQdrantClient(":memory:")
    vectors, usual = QdrantVector(client, "stars", DIMENSION, "test-1", LIMITS), MemoryReplica()
    log = WriteLog(tmp_path / "log", 2**30)
    replication = Replication(log, {"keyword": usual, "vector": vectors}, "keyword", usual, "t")
    counts = ReplicaCounts(replication)
    await replication.write([vector_record(id_) for id_ in "abc"], [])
    (collection,) = (await client.get_collections()).collections
    await client.delete_collection(collection.name)
    await counts.check()
    await counts.check()
    assert counts.problems == {"vector": "has 0 of 3 documents"}
    assert await vectors.check()
    await vectors.close()
