"""Documents that a replica refuses, as they are kept."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from adapters import Scope, Unavailable
from orchestrator.indexing.log import quarantine as quarantine_module
from orchestrator.indexing.log.quarantine import Quarantine, Quarantined
from orchestrator.indexing.log.write import Write
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_log, open_replication

REPLICAS = ("one", "two")


def entry(id_: str, sequence: int = 1, replica: str = "one", tenant: str = "t") -> Quarantined:
    record = vector_record(id_, scope=Scope(tenant, "default"))
    return Quarantined(replica, sequence, f"refuses {id_}", Write.of([record], []))


@pytest.fixture
def quarantine(tmp_path: Path) -> Quarantine:
    return Quarantine(tmp_path / "quarantine")


def test_an_entry_is_the_same_after_the_disk(tmp_path: Path, quarantine: Quarantine) -> None:
    deletion = Quarantined("two", 2, "refuses x", Write.of([], [key("x")]))
    quarantine.add([entry("a"), deletion])
    first, second = Quarantine(tmp_path / "quarantine").entries()
    assert second == deletion
    assert second.key == key("x")
    assert (first.replica, first.sequence, first.reason, first.key) == ("one", 1, "refuses a", ("t", "default", "a"))
    assert first.write.upserts()[0].record == entry("a").write.records[0]
    assert first.write.vectors == entry("a").write.vectors
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "quarantine").iterdir())


def test_a_newer_entry_of_a_document_replaces_the_older_one(quarantine: Quarantine) -> None:
    quarantine.add([entry("a", 1), entry("b", 1), entry("a", 1, "two")])
    quarantine.add([entry("a", 2)])
    assert [(each.sequence, each.replica, each.key[2]) for each in quarantine.entries()] == [
        (1, "two", "a"),
        (1, "one", "b"),
        (2, "one", "a"),
    ]


def test_releasing_concerns_one_replica_and_the_named_documents(quarantine: Quarantine) -> None:
    quarantine.release("one", [key("a")])
    quarantine.add([entry("a"), entry("b"), entry("a", replica="two"), entry("a", tenant="other")])
    quarantine.release("one", [("t", "default", "a"), ("t", "default", "absent")])
    assert {(each.replica, *each.key) for each in quarantine.entries()} == {
        ("one", "t", "default", "b"),
        ("two", "t", "default", "a"),
        ("one", "other", "default", "a"),
    }


def test_reasons_are_those_of_one_write(quarantine: Quarantine) -> None:
    a, b = (("t", "default", id_) for id_ in "ab")
    assert quarantine.reasons(1, [a, b], REPLICAS) == {}
    quarantine.add([entry("a", 1), entry("b", 2), entry("a", 1, "two")])
    assert quarantine.reasons(1, [a, b], REPLICAS) == {a: {"one": "refuses a", "two": "refuses a"}}
    assert quarantine.reasons(2, [a, b], REPLICAS) == {b: {"one": "refuses b"}}
    assert quarantine.reasons(2, [a], REPLICAS) == quarantine.reasons(2, [b], ["two"]) == {}


def test_one_tenant_does_not_fill_the_disk_and_keeps_the_newest(
    tmp_path: Path, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    quarantine.add([entry("z", tenant="other"), entry("0")])
    size = max(path.stat().st_size for path in (tmp_path / "quarantine").iterdir())
    monkeypatch.setattr(quarantine_module, "MAX_TENANT_BYTES", 2 * size)
    for n, path in enumerate(sorted((tmp_path / "quarantine").iterdir())):
        os.utime(path, (n, n))
    with caplog.at_level(logging.ERROR):
        for id_ in "12":
            quarantine.add([entry(id_)])
    ids: dict[str, set[str]] = {}
    for each in quarantine.entries():
        ids.setdefault(each.key[0], set()).add(each.key[2])
    assert ids == {"t": {"1", "2"}, "other": {"z"}}
    assert len(caplog.messages) == 1
    assert "its tenant has more than" in caplog.text


def test_a_damaged_entry_is_set_aside_and_named(tmp_path: Path, quarantine: Quarantine) -> None:
    quarantine.add([entry("a"), entry("b", 2)])
    path = min((tmp_path / "quarantine").iterdir())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert len(quarantine.entries()) == 1
    assert quarantine.damaged() == [str(path.with_suffix(".damaged"))]
    assert len(quarantine.entries()) == 1


@pytest.mark.anyio
async def test_searches_of_every_process_are_told_that_refused_documents_were_accepted(tmp_path: Path) -> None:
    replicas = {"one": MemoryReplica(), "two": MemoryReplica()}
    replication, other = (open_replication(tmp_path, replicas) for _ in range(2))
    replicas["two"].refused_ids = {"a", "b"}
    acknowledgement = await replication.write([vector_record("a"), vector_record("b")], [])
    assert acknowledgement.rejected == {key(id_): {"two": f"refuses ['{id_}']"} for id_ in "ab"}
    assert acknowledgement.pending == {}
    assert [each.key for each in other.refused()] == [key("a"), key("b")]
    other.refresh()
    before = other.data_version()
    assert await replication.retry_refused() == 0
    other.refresh()
    assert other.data_version() == before
    replicas["two"].refused_ids = {"b"}
    assert await replication.retry_refused() == 1
    other.refresh()
    assert other.data_version() > before
    assert set(replicas["two"].texts) == {"a"}
    assert [each.key for each in replication.refused()] == [key("b")]


@pytest.mark.anyio
async def test_what_was_accepted_is_told_even_if_another_replica_fails(tmp_path: Path) -> None:
    replicas = {"one": MemoryReplica(), "two": MemoryReplica()}
    replication = open_replication(tmp_path, replicas)
    for replica in replicas.values():
        replica.refused_ids = {"a"}
    await replication.write([vector_record("a")], [])
    before = replication.data_version()
    replicas["one"].refused_ids = set()
    replicas["two"].error = Unavailable("away")
    with pytest.raises(Unavailable, match="away"):
        await replication.retry_refused()
    assert replication.data_version() > before
    assert [each.replica for each in replication.refused()] == ["two"]


def test_the_log_names_the_damaged_entries(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.quarantine.add([entry("a")])
    (path,) = (tmp_path / "log" / "quarantine").iterdir()
    path.write_bytes(b"damaged")
    assert log.quarantine.entries() == []
    assert log.damaged() == [str(path.with_suffix(".damaged"))]
