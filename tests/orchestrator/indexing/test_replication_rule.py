"""Who may replace and delete what, decided where a write is applied: in its order, and the same in every replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from adapters import Record, Scope, Unavailable, Viewer
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from fusion.columns import Documents
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.replica_applier import UNDECIDED, ReplicaApplier
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_log, open_replication

pytestmark = pytest.mark.anyio

Replicas = dict[str, MemoryReplica]
SECRET = vector_record("secret", "old", sensitivity="restricted")
OPEN = vector_record("open", "old", sensitivity="public")
REPLACEMENTS = [vector_record("secret", "new"), vector_record("open", "new")]


@pytest.fixture
def replicas() -> Replicas:
    """Documents are read from the first."""
    return {"documents": MemoryReplica(), "graph": MemoryReplica()}


async def test_a_document_above_the_clearance_is_neither_replaced_nor_deleted_in_any_replica(
    tmp_path: Path, replicas: Replicas
) -> None:
    replication = open_replication(tmp_path, replicas)
    await replication.write([SECRET, OPEN], [])
    acknowledgement = await replication.write(REPLACEMENTS, [], Viewer("normal"))
    assert (acknowledgement.hidden, acknowledgement.pending) == ({key("secret")}, {})
    assert replicas["documents"].texts == replicas["graph"].texts == {"secret": "old", "open": "new"}
    acknowledgement = await replication.write([], [key("secret"), key("open")], Viewer("normal"))
    assert acknowledgement.hidden == {key("secret")}
    assert replicas["documents"].texts == replicas["graph"].texts == {"secret": "old"}
    acknowledgement = await replication.write([], [key("secret")])
    assert acknowledgement.hidden == frozenset()
    assert replicas["documents"].texts == replicas["graph"].texts == {}


@pytest.mark.parametrize("writer", [Viewer(user="bob"), Viewer(teams=("sales",)), Viewer("normal", "bob", ("sales",))])
async def test_what_a_writer_may_not_see_of_others_is_neither_replaced_nor_deleted(
    tmp_path: Path, replicas: Replicas, writer: Viewer
) -> None:
    hidden = [
        vector_record("private", "old", visibility="private", owner="alice"),
        vector_record("team", "old", visibility="team", team="legal", owner="alice"),
    ]
    replication = open_replication(tmp_path, replicas)
    await replication.write([*hidden, OPEN], [])
    replacements = [vector_record(each, "new") for each in ("private", "team", "open")]
    acknowledgement = await replication.write(replacements, [], writer)
    assert acknowledgement.hidden == {key("private"), key("team")}
    kept = {"private": "old", "team": "old"}
    assert replicas["documents"].texts == replicas["graph"].texts == {**kept, "open": "new"}
    await replication.write([], [key("private"), key("team"), key("open")], writer)
    assert replicas["documents"].texts == replicas["graph"].texts == kept
    owner = Viewer("normal", "alice")
    assert (await replication.write([], [key("private"), key("team")], owner)).hidden == frozenset()
    assert replicas["documents"].texts == replicas["graph"].texts == {}


async def test_a_write_is_accepted_while_the_documents_are_away_and_decided_when_they_are_back(
    tmp_path: Path, replicas: Replicas
) -> None:
    replication = open_replication(tmp_path, replicas)
    await replication.write([SECRET, OPEN], [])
    replicas["documents"].error = Unavailable("away")
    acknowledgement = await replication.write(REPLACEMENTS, [], Viewer("public"))
    assert acknowledgement.hidden is None
    assert acknowledgement.pending["documents"] == "away"
    assert "decide which documents the writer may replace" in acknowledgement.pending["graph"]
    assert replicas["graph"].texts == {"secret": "old", "open": "old"}
    assert not replication.is_current()
    replicas["documents"].error = None
    assert await open_replication(tmp_path, replicas).apply_unapplied() == {}  # a restart changes nothing
    assert replicas["documents"].texts == replicas["graph"].texts == {"secret": "old", "open": "new"}
    assert not replication.has_unapplied()
    assert replication.is_current()


async def test_the_order_of_writes_decides_not_the_time_of_application(tmp_path: Path, replicas: Replicas) -> None:
    replication = open_replication(tmp_path, replicas)
    replicas["documents"].error = Unavailable("away")
    await replication.write([vector_record("a", "first")], [], Viewer("public"))
    await replication.write([vector_record("a", "protected", sensitivity="restricted")], [])
    await replication.write([vector_record("a", "too late")], [], Viewer("public"))
    replicas["documents"].error = None
    acknowledgement = await replication.write([vector_record("b")], [], Viewer("public"))
    assert acknowledgement.hidden == frozenset()
    assert replicas["documents"].texts == replicas["graph"].texts == {"a": "protected", "b": "text of b"}


async def test_a_write_with_the_highest_clearance_needs_no_decision_but_waits_for_earlier_ones(
    tmp_path: Path, replicas: Replicas
) -> None:
    replication = open_replication(tmp_path, replicas)
    replicas["documents"].error = Unavailable("away")
    acknowledgement = await replication.write([SECRET], [])
    assert (acknowledgement.pending, acknowledgement.hidden) == ({"documents": "away"}, frozenset())
    assert replicas["graph"].texts == {"secret": "old"}
    await replication.write([OPEN], [], Viewer("normal"))
    acknowledgement = await replication.write([vector_record("later")], [])
    assert list(acknowledgement.pending) == ["documents", "graph"]
    assert replicas["graph"].texts == {"secret": "old"}


async def test_a_replica_that_has_a_write_is_not_said_to_wait_for_a_newer_one(
    tmp_path: Path, replicas: Replicas
) -> None:
    """While one write is applied, another one is appended, which is not decided yet."""
    log = open_log(tmp_path)
    first = log.append(Write.of([vector_record("a")], []), replicas)
    applied = MemoryReplica.apply

    class Overtaken(MemoryReplica):
        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            await applied(self, sequence, upserts, deletes)
            log.append(Write.of([vector_record("b")], [], Viewer("normal")), replicas)

    graph = Overtaken()
    applier = ReplicaApplier(log, "graph", graph, 30.0, documents=None)
    assert await applier.catch_up() is None
    assert graph.applied == [first]
    assert await applier.catch_up() == UNDECIDED


async def test_nothing_is_decided_by_documents_that_could_not_be_read(tmp_path: Path, replicas: Replicas) -> None:
    replication = open_replication(tmp_path, replicas)
    await replication.write([SECRET], [])

    async def fail(scope: Scope, documents: Documents) -> Mapping[str, Record]:
        raise Unavailable("a shard is away")

    fetch, replicas["documents"].fetch = replicas["documents"].fetch, fail  # type: ignore[method-assign]
    acknowledgement = await replication.write(REPLACEMENTS, [], Viewer("public"))
    assert (acknowledgement.hidden, acknowledgement.pending["documents"]) == (None, "a shard is away")
    replicas["documents"].fetch = fetch  # type: ignore[method-assign]
    assert await replication.apply_unapplied() == {}
    assert replicas["documents"].texts == {"secret": "old", "open": "new"}


async def test_the_decision_outlives_a_crash_in_the_middle_of_the_write(tmp_path: Path, replicas: Replicas) -> None:
    """Applied again, the write finds its own documents, which are above the clearance of their writer."""

    class Crashing(MemoryReplica):
        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            await super().apply(sequence, upserts[:1], [])
            raise Unavailable("killed")

    crashing = Crashing()
    own = [vector_record(id_, "mine", sensitivity="restricted") for id_ in ("a", "b")]
    killed = open_replication(tmp_path, {"documents": crashing, "graph": replicas["graph"]})
    assert "documents" in (await killed.write(own, [], Viewer("public"))).pending
    replicas["documents"].records |= crashing.records
    assert replicas["documents"].texts == {"a": "mine"}
    assert await open_replication(tmp_path, replicas).apply_unapplied() == {}
    assert replicas["documents"].texts == replicas["graph"].texts == {"a": "mine", "b": "mine"}


def test_the_log_remembers_the_writer_and_the_decision(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    writer = Viewer("sensitive", "alice", ("legal", "sales"))
    sequence = log.append(Write.of([OPEN, SECRET], [key("c")], writer), ["documents"])
    assert log.read(sequence).viewer == writer
    assert log.read(sequence).keys == [key("open"), key("secret"), key("c")]
    assert [each.record for each in log.read(sequence).upserts({key("secret")})] == [OPEN.record]
    assert log.hidden(sequence) is None
    log.record_hidden(sequence, [])
    assert log.hidden(sequence) == frozenset()
    log.record_hidden(sequence, {key("secret"), key("c")})
    assert open_log(tmp_path).hidden(sequence) == {key("secret"), key("c")}
