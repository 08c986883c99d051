"""A replica may serve documents only as new as those of the replica that documents are usually read from."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Unavailable
from fusion.columns import Documents
from orchestrator.indexing.replica_documents import ReplicaDocuments
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_replication

pytestmark = pytest.mark.anyio


async def test_documents_are_read_while_their_usual_replica_is_away_also_newer_ones(tmp_path: Path) -> None:
    usual, copy = MemoryReplica(), MemoryReplica()
    replication = open_replication(tmp_path, {"usual": usual, "copy": copy})
    documents = ReplicaDocuments(replication, "copy", copy)
    await replication.write([vector_record("a", "1"), vector_record("b", "1")], [])
    assert await documents.fetch(SCOPE, Documents.of_ids(["a", "b", "c"])) == usual.records
    usual.error = Unavailable("away")
    await replication.write([vector_record("a", "2")], [key("b")])
    assert copy.texts == {"a": "2"}
    assert await documents.fetch(SCOPE, Documents.of_ids(["a", "b", "c"])) == copy.records


async def test_a_replica_that_lacks_a_write_is_not_read(tmp_path: Path) -> None:
    """Its version of a document may be visible to callers that must not see the newest one."""
    usual, copy = MemoryReplica(), MemoryReplica()
    replication = open_replication(tmp_path, {"usual": usual, "copy": copy})
    documents = ReplicaDocuments(replication, "copy", copy)
    await replication.write([vector_record("a", "1", sensitivity="public")], [])
    copy.error = Unavailable("away")
    await replication.write([vector_record("a", "2", sensitivity="restricted")], [])
    copy.error = None
    with pytest.raises(Unavailable, match="lacks some of the newest writes"):
        await documents.fetch(SCOPE, Documents.of_ids(["a"]))
    await replication.apply_unapplied()
    assert await documents.fetch(SCOPE, Documents.of_ids(["a"])) == usual.records


@pytest.mark.parametrize("refusing", ["usual", "copy"])
async def test_a_document_that_a_replica_refused_is_left_out(tmp_path: Path, refusing: str) -> None:
    replicas = {"usual": MemoryReplica(), "copy": MemoryReplica()}
    replication = open_replication(tmp_path, replicas)
    documents = ReplicaDocuments(replication, "copy", replicas["copy"])
    await replication.write([vector_record("a", "1"), vector_record("b", "1")], [])
    replicas[refusing].refused_ids = {"a"}
    await replication.write([vector_record("a", "2"), vector_record("b", "2")], [])
    found = await documents.fetch(SCOPE, Documents.of_ids(["a", "b"]))
    assert {id_: each.document.text for id_, each in found.items()} == {"b": "2"}
