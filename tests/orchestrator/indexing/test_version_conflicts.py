"""Documents in a store that another data folder wrote, whose clock was ahead.

The replica is a stand-in: it refuses older versions as OpenSearch and the graph server do, which
``tests/adapters/servers/test_versions_on_servers.py`` tests on real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from adapters import VersionConflict
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.replica_applier import ReplicaApplier
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_log, upsert

pytestmark = pytest.mark.anyio

HOUR_US = 3_600 * 1_000_000


class VersionedReplica(MemoryReplica):
    """Stores the version of each document, of deleted ones too."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[Key, int] = {}

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        keys = [*(each.record.key for each in upserts), *deletes]
        newer = {version for each in keys if (version := self.versions.get(each, 0)) > sequence}
        due = {each for each in keys if self.versions.get(each, 0) < sequence}
        await super().apply(
            sequence, [each for each in upserts if each.record.key in due], [each for each in deletes if each in due]
        )
        self.versions |= dict.fromkeys(due, sequence)
        if newer:
            raise VersionConflict("the stand-in", newer)


def applier(folder: Path, replica: VersionedReplica) -> ReplicaApplier:
    return ReplicaApplier(open_log(folder), "one", replica, 30.0, documents=None)


def append(folder: Path, *writes: Write) -> list[int]:
    log = open_log(folder)
    return [log.append(write, ["one"]) for write in writes]


async def test_a_write_is_newer_than_what_another_log_has_written(tmp_path: Path) -> None:
    replica = VersionedReplica()
    (sequence,) = append(tmp_path, Write.of([vector_record("a", "new"), vector_record("b")], [key("c")]))
    await replica.apply(sequence + HOUR_US, [vector_record("a", "old"), vector_record("c", "old")], [])
    assert await applier(tmp_path, replica).catch_up() is None
    assert replica.texts == {"a": "new", "b": "text of b"}
    append(tmp_path, upsert("a", "newest"))
    assert await applier(tmp_path, replica).catch_up() is None  # a restart keeps the offset
    assert replica.texts["a"] == "newest"
    assert len(replica.applied) == 4  # and no further conflict


async def test_even_more_is_added_if_the_other_log_goes_on(tmp_path: Path) -> None:
    replica = VersionedReplica()
    for n in range(3):
        (sequence,) = append(tmp_path, upsert("a", str(n)))
        await replica.apply(sequence + (n + 1) * HOUR_US, [vector_record("a", "of the other")], [])
        assert await applier(tmp_path, replica).catch_up() is None
        assert replica.texts == {"a": str(n)}


async def test_a_newer_write_of_this_log_that_was_applied_before_a_crash_is_no_conflict(tmp_path: Path) -> None:
    replica = VersionedReplica()
    first, second, third = append(tmp_path, upsert("a", "1"), upsert("a", "2"), upsert("b"))
    for sequence in (first, second):
        await replica.apply(sequence, open_log(tmp_path).read(sequence).upserts(), [])
    assert await applier(tmp_path, replica).catch_up() is None
    assert replica.texts == {"a": "2", "b": "text of b"}
    assert replica.versions == {key("a"): second, key("b"): third}
    assert open_log(tmp_path).version_offset("one") == 0


async def test_without_its_cursor_and_its_offset_a_replica_ends_with_the_newest_texts(tmp_path: Path) -> None:
    replica = VersionedReplica()
    (first,) = append(tmp_path, upsert("a", "1"))
    await replica.apply(first + HOUR_US, [vector_record("a", "of the other")], [])
    assert await applier(tmp_path, replica).catch_up() is None
    append(tmp_path, upsert("a", "2"), Write.of([], [key("a")]), upsert("a", "3"))
    assert await applier(tmp_path, replica).catch_up() is None
    for path in (*(tmp_path / "log").glob("*.cursor"), *(tmp_path / "log").glob("*.offset")):
        path.write_bytes(b"damaged")
    assert await applier(tmp_path, replica).catch_up() is None
    assert replica.texts == {"a": "3"}


async def test_a_probe_that_was_sent_before_a_crash_is_no_conflict(tmp_path: Path) -> None:
    replica = VersionedReplica()
    replica.refused_ids = {"a"}
    (sequence,) = append(tmp_path, upsert("a"))
    assert await applier(tmp_path, replica).catch_up() is None
    for path in (tmp_path / "log").glob("*.cursor"):
        path.unlink()
    assert await applier(tmp_path, replica).catch_up() is None
    assert [entry.sequence for entry in open_log(tmp_path).quarantine.entries()] == [sequence]
    assert replica.texts == {}
    assert open_log(tmp_path).version_offset("one") == 0
