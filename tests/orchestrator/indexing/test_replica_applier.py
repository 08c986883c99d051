"""The application of the write log to one replica: order, batches, bisection, one process at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import log2
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import AdapterError, ExecutionFailed, Rejected, TimedOut, Unavailable
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from orchestrator.indexing import failed_alone
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.replica_applier import ReplicaApplier
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_log, upsert

pytestmark = pytest.mark.anyio

NAME = "one"


@pytest.fixture
def replica() -> MemoryReplica:
    return MemoryReplica()


def applier(folder: Path, replica: MemoryReplica, slot_timeout_s: float = 30.0) -> ReplicaApplier:
    return ReplicaApplier(open_log(folder), NAME, replica, slot_timeout_s, documents=None)


def append(folder: Path, *writes: Write) -> list[int]:
    log = open_log(folder)
    return [log.append(write, [NAME]) for write in writes]


def refused(folder: Path, sequence: int) -> dict[Key, dict[str, str]]:
    keys = [entry.key for entry in open_log(folder).quarantine.entries()]
    return open_log(folder).quarantine.reasons(sequence, keys, [NAME])


async def test_without_unapplied_writes_the_replica_is_not_contacted(tmp_path: Path, replica: MemoryReplica) -> None:
    replica.error = Unavailable("away")
    assert await applier(tmp_path, replica).catch_up() is None


async def test_writes_are_applied_in_order_and_marked(tmp_path: Path, replica: MemoryReplica) -> None:
    sequences = append(tmp_path, upsert("a", "1"), upsert("b"), upsert("a", "2"), Write.of([], [key("b")]))
    assert await applier(tmp_path, replica).catch_up() is None
    assert replica.applied == sequences
    assert replica.texts == {"a": "2"}
    assert open_log(tmp_path).unapplied(NAME) == []


async def test_a_failed_write_stops_the_later_ones(tmp_path: Path, replica: MemoryReplica) -> None:
    """Otherwise an older text would replace a newer one when the failed write is applied at last."""
    first, second, third = append(tmp_path, upsert("a", "1"), Write.of([], [key("x"), key("y")]), upsert("a", "3"))
    applying = applier(tmp_path, replica)
    replica.unapplicable = second
    assert await applying.catch_up() == f"cannot apply {second}"
    assert replica.applied == [first]
    assert open_log(tmp_path).unapplied(NAME) == [second, third]
    replica.unapplicable = None
    assert await applier(tmp_path, replica).catch_up() is None
    assert replica.applied == [first, second, third]


async def test_the_index_is_created_once_and_again_after_an_error(tmp_path: Path, replica: MemoryReplica) -> None:
    """The server may have lost the index while it was away."""
    applying = applier(tmp_path, replica)
    append(tmp_path, upsert("a"), upsert("b"))
    await applying.catch_up()
    append(tmp_path, upsert("c"))
    await applying.catch_up()
    assert replica.created == 1
    replica.error = Unavailable("away")
    append(tmp_path, upsert("d"))
    assert await applying.catch_up() == "away"
    replica.error = None
    assert await applying.catch_up() is None
    assert replica.created == 2


async def test_a_time_out_halves_the_batches_and_success_doubles_them_again(
    tmp_path: Path, replica: MemoryReplica
) -> None:
    class Counting(MemoryReplica):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            self.sizes.append(len(upserts))
            await super().apply(sequence, upserts, deletes)

    slow = Counting()
    slow.max_documents = 3
    twenty = Write.of([vector_record(str(n)) for n in range(20)], [])
    applying = applier(tmp_path, slow)
    append(tmp_path, twenty)
    assert await applying.catch_up() == "no time for 20"
    assert await applying.catch_up() == "no time for 10"
    assert await applying.catch_up() == "no time for 5"
    assert await applying.catch_up() is None
    assert len(slow.texts) == 20
    assert slow.sizes == [20, 10, 5, *[2] * 10]
    slow.max_documents, slow.sizes = None, []
    append(tmp_path, twenty, twenty, twenty, twenty)
    assert await applying.catch_up() is None
    assert slow.sizes == [*[4] * 5, 8, 8, 4, 16, 4, 20]


async def test_a_single_document_without_time_is_not_halved_to_nothing(tmp_path: Path, replica: MemoryReplica) -> None:
    replica.max_documents = 0
    applying = applier(tmp_path, replica)
    append(tmp_path, upsert("a"))
    for _ in range(3):
        assert await applying.catch_up() == "no time for 1"
    replica.max_documents = 1
    assert await applying.catch_up() is None


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures count however close together they are."""
    monkeypatch.setattr(failed_alone, "MIN_INTERVAL_S", 0.0)


class Failing(MemoryReplica):
    """Fails whatever contains one of some documents, or their deletion, without a reason."""

    def __init__(self, error: type[AdapterError], *ids: str) -> None:
        super().__init__()
        self.failing_ids = set(ids)
        self.failure = error

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        ids = [*(each.record.document.id for each in upserts), *(id_ for _, _, id_ in deletes)]
        if not self.failing_ids.isdisjoint(ids):
            raise self.failure("no time")
        await super().apply(sequence, upserts, deletes)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("error", "failed"), [(TimedOut, 6), (ExecutionFailed, 2)])
async def test_a_document_that_alone_fails_in_every_attempt_is_refused_if_others_are_applied(
    tmp_path: Path, error: type[AdapterError], failed: int
) -> None:
    failing = Failing(error, "slow", "slower")
    applying = applier(tmp_path, failing)
    four = Write.of([vector_record(id_) for id_ in ("a", "slow", "b", "slower")], [])
    for write, count in ((four, failed), (Write.of([vector_record("c")], [key("slow")]), 2)):
        (sequence,) = append(tmp_path, write)
        outcomes = []
        while (reason := await applying.catch_up()) is not None:
            outcomes.append(reason)
        assert outcomes == ["no time"] * count
        assert refused(tmp_path, sequence) == {
            each: {NAME: "no time, in 3 attempts"} for each in write.keys if each[2].startswith("slow")
        }
    assert set(failing.texts) == {"a", "b", "c"}
    assert await applying.retry_refused() == 0
    failing.failing_ids = {"slow"}
    assert await applying.retry_refused() == 1
    assert set(failing.texts) == {"a", "b", "c", "slower"}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("error", [TimedOut, ExecutionFailed])
async def test_documents_that_fail_once_each_are_not_refused(tmp_path: Path, error: type[AdapterError]) -> None:
    failing = Failing(error, "a")
    applying = applier(tmp_path, failing)
    applying._batch_size = 1
    (sequence,) = append(tmp_path, Write.of([vector_record(id_) for id_ in "abcd"], []))
    for next_id in "bcd":
        assert await applying.catch_up() == "no time"
        failing.failing_ids = {next_id}
    failing.failing_ids = set()
    assert await applying.catch_up() is None
    assert refused(tmp_path, sequence) == {}
    assert set(failing.texts) == set("abcd")


async def test_failures_soon_after_each_other_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many writers make many attempts while a shard moves to another node."""
    now = 1_000.0
    monkeypatch.setattr(failed_alone, "monotonic", lambda: now)
    failing = Failing(ExecutionFailed, "a")
    applying = applier(tmp_path, failing)
    (sequence,) = append(tmp_path, upsert("a"))
    for _ in range(2):
        for _ in range(20):
            assert await applying.catch_up() == "no time"
        now += failed_alone.MIN_INTERVAL_S
    assert await applying.catch_up() is None
    assert set(refused(tmp_path, sequence)) == {key("a")}


@pytest.mark.usefixtures("at_once")
async def test_each_document_without_time_costs_three_time_outs(tmp_path: Path) -> None:
    class Counting(Failing):
        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            nonlocal time_outs
            try:
                await super().apply(sequence, upserts, deletes)
            except TimedOut:
                time_outs += 1
                raise

    time_outs = 0
    slow = Counting(TimedOut, *map(str, range(16)))
    applying = applier(tmp_path, slow)
    (sequence,) = append(tmp_path, Write.of([vector_record(str(n)) for n in range(32)], []))
    while await applying.catch_up() is not None:
        pass
    assert len(refused(tmp_path, sequence)) == 16
    assert len(slow.texts) == 16
    assert time_outs <= 3 * 16 + log2(32)


@pytest.mark.usefixtures("at_once")
async def test_each_probe_is_another_document(tmp_path: Path) -> None:
    """A replica ignores a version that it has had already, so a probe with the same id would prove nothing."""

    class Full(MemoryReplica):
        """Has memory for one probe, and then for nothing."""

        def __init__(self) -> None:
            super().__init__()
            self.versions: dict[Key, int] = {}
            self.is_full = False

        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            keys = [*(each.record.key for each in upserts), *deletes]
            if all(self.versions.get(each, -1) >= sequence for each in keys):
                return
            if upserts and (self.is_full or upserts[0].record.tenant):
                raise ExecutionFailed("memory full")
            self.is_full = True
            self.versions |= dict.fromkeys(keys, sequence)

    applying = applier(tmp_path, Full())
    (sequence,) = append(tmp_path, Write.of([vector_record(str(n)) for n in range(5)], []))
    for _ in range(5):
        assert await applying.catch_up() == "memory full"
    assert refused(tmp_path, sequence) == {}


@pytest.mark.usefixtures("at_once")
async def test_documents_wait_for_a_replica_that_does_not_report_why_it_fails(
    tmp_path: Path, replica: MemoryReplica
) -> None:
    """Its memory may be full."""
    applying = applier(tmp_path, replica)
    (sequence,) = append(tmp_path, Write.of([vector_record(str(n)) for n in range(3)], []))
    replica.error = ExecutionFailed("out of memory")
    for _ in range(10):
        assert await applying.catch_up() == "out of memory"
    replica.error = None
    assert await applying.catch_up() is None
    assert refused(tmp_path, sequence) == {}
    assert set(replica.texts) == {"0", "1", "2"}


ids = st.integers(0, 40).map(str)


@given(st.sets(ids, min_size=1), st.sets(ids), st.sets(ids))
async def test_exactly_the_refused_documents_are_rejected(
    tmp_path_factory: pytest.TempPathFactory, upserts: set[str], deletes: set[str], refused_ids: set[str]
) -> None:
    """Whatever is written together; by bisection."""
    folder, replica = tmp_path_factory.mktemp("log"), MemoryReplica()
    replica.refused_ids = refused_ids
    write = Write.of(list(map(vector_record, sorted(upserts))), map(key, deletes))
    (sequence,) = append(folder, write)
    assert await applier(folder, replica).catch_up() is None
    assert set(replica.texts) == upserts - refused_ids
    assert set(refused(folder, sequence)) == {key(id_) for id_ in (upserts | deletes) & refused_ids}


async def test_a_rejected_document_is_found_in_a_logarithmic_number_of_calls(
    tmp_path: Path, replica: MemoryReplica
) -> None:
    calls = 0

    class Counting(MemoryReplica):
        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            nonlocal calls
            calls += 1
            await super().apply(sequence, upserts, deletes)

    counting = Counting()
    counting.refused_ids = {"200"}
    append(tmp_path, Write.of([vector_record(str(n)) for n in range(256)], []))
    await applier(tmp_path, counting).catch_up()
    assert len(counting.texts) == 255
    assert calls == 2 * log2(256) + 1


@pytest.mark.parametrize("count", [1, 2, 9, 40])
async def test_refused_documents_are_quarantined_and_the_next_write_is_applied(
    tmp_path: Path, replica: MemoryReplica, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    """Even if the replica accepts no document of the write: it accepts the probe, so it is in good health."""
    replica.refused_ids = {str(n) for n in range(count)}
    sequence, _ = append(tmp_path, Write.of([vector_record(str(n)) for n in range(count)], []), upsert("next"))
    with caplog.at_level(logging.ERROR):
        assert await applier(tmp_path, replica).catch_up() is None
    assert refused(tmp_path, sequence) == {key(str(n)): {NAME: f"refuses ['{n}']"} for n in range(count)}
    assert caplog.messages == [
        f"{NAME} refuses a document, which is quarantined: refuses ['{n}']" for n in range(count)
    ]
    assert set(replica.texts) == {"next"}  # and not the probe


async def test_if_the_replica_refuses_the_probe_too_the_write_waits(tmp_path: Path, replica: MemoryReplica) -> None:
    replica.error = Rejected("a read-only server")
    (sequence,) = append(tmp_path, Write.of([vector_record(str(n)) for n in range(9)], []))
    assert await applier(tmp_path, replica).catch_up() == "a read-only server"
    assert refused(tmp_path, sequence) == {}
    assert open_log(tmp_path).unapplied(NAME) == [sequence]


async def test_a_newer_write_of_a_document_takes_it_out_of_the_quarantine(
    tmp_path: Path, replica: MemoryReplica
) -> None:
    replica.refused_ids = {"a", "b"}
    append(tmp_path, Write.of([vector_record("a"), vector_record("b"), vector_record("c")], []))
    applying = applier(tmp_path, replica)
    assert await applying.catch_up() is None
    replica.refused_ids = set()
    append(tmp_path, upsert("c"), Write.of([], [key("b")]))
    assert await applying.catch_up() is None
    assert [entry.key for entry in open_log(tmp_path).quarantine.entries()] == [key("a")]
    append(tmp_path, upsert("a", "newer"))
    assert await applying.catch_up() is None
    assert open_log(tmp_path).quarantine.entries() == []
    assert await applying.retry_refused() == 0
    assert replica.texts == {"a": "newer", "c": "text of c"}


async def test_quarantined_documents_are_written_again_with_their_own_sequence_number(
    tmp_path: Path, replica: MemoryReplica
) -> None:
    replica.refused_ids = {"a", "b", "x"}
    first, second = append(tmp_path, upsert("a"), Write.of([vector_record("b"), vector_record("c")], [key("x")]))
    applying = applier(tmp_path, replica)
    assert await applying.catch_up() is None
    replica.refused_ids, replica.applied = {"b"}, []
    assert await applying.retry_refused() == 2
    assert replica.applied == [first, second]
    assert set(replica.texts) == {"a", "c"}
    assert refused(tmp_path, second) == {key("b"): {NAME: "refuses ['b']"}}


async def test_nothing_is_written_again_while_a_newer_write_waits(tmp_path: Path, replica: MemoryReplica) -> None:
    replica.refused_ids = {"a"}
    append(tmp_path, upsert("a", "older"))
    applying = applier(tmp_path, replica)
    assert await applying.catch_up() is None
    (newer,) = append(tmp_path, upsert("a", "newer"))
    replica.refused_ids, replica.unapplicable = set(), newer
    with pytest.raises(Unavailable, match=f"one does not have every write: cannot apply {newer}"):
        await applying.retry_refused()
    replica.unapplicable = None
    assert await applying.retry_refused() == 0
    assert replica.texts == {"a": "newer"}


async def test_two_processes_never_apply_at_the_same_time(tmp_path: Path) -> None:
    class Exclusive(MemoryReplica):
        running = 0

        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            assert self.running == 0
            self.running += 1
            await anyio.lowlevel.checkpoint()
            await super().apply(sequence, upserts, deletes)
            self.running -= 1

    replica = Exclusive()
    appliers = [applier(tmp_path, replica) for _ in range(3)]
    sequences = append(tmp_path, *(upsert(str(n)) for n in range(6)))
    async with anyio.create_task_group() as group:
        for each in (*appliers, *appliers):
            group.start_soon(each.catch_up)
    assert replica.applied == sequences


async def test_while_another_process_applies_the_wait_is_limited(tmp_path: Path, replica: MemoryReplica) -> None:
    log = open_log(tmp_path)
    append(tmp_path, upsert("a"))
    with log.applying(NAME) as has_lock:
        assert has_lock
        reason = await applier(tmp_path, replica, slot_timeout_s=0.05).catch_up()
        assert reason == "is still applying earlier writes after 0.05 s"
        assert replica.applied == []
    assert await applier(tmp_path, replica, slot_timeout_s=0.05).catch_up() is None


async def test_the_wait_is_no_limit_on_applying_itself(tmp_path: Path, replica: MemoryReplica) -> None:
    """Only the wait for the slot is limited: a slow replica has the time limit of its adapter."""

    class Slow(MemoryReplica):
        async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
            await anyio.sleep(0.1)
            await super().apply(sequence, upserts, deletes)

    slow = Slow()
    append(tmp_path, upsert("a"))
    assert await applier(tmp_path, slow, slot_timeout_s=0.05).catch_up() is None
    assert slow.texts == {"a": "text of a"}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unavailable("away"), "away"),
        (TimedOut("no time"), "no time"),
        (AdapterError("damaged"), "damaged"),
        (ZeroDivisionError("a defect"), "internal error: ZeroDivisionError"),
        (OSError(28, "No space left on device"), "internal error: OSError"),
    ],
)
async def test_every_error_is_a_reason_and_nothing_is_marked_as_applied(
    tmp_path: Path, replica: MemoryReplica, error: Exception, reason: str
) -> None:
    replica.error = error
    append(tmp_path, upsert("a"))
    assert await applier(tmp_path, replica).catch_up() == reason
    replica.error = None
    assert await applier(tmp_path, replica).catch_up() is None
    assert replica.texts == {"a": "text of a"}


async def test_cancelling_releases_the_slot(tmp_path: Path, replica: MemoryReplica) -> None:
    replica.resume = anyio.Event()
    applying = applier(tmp_path, replica)
    append(tmp_path, upsert("a"))
    async with anyio.create_task_group() as group:
        group.start_soon(applying.catch_up)
        await replica.reached.wait()
        group.cancel_scope.cancel()
    replica.resume = None
    assert await applying.catch_up() is None
    assert await applier(tmp_path, replica).catch_up() is None
    assert len(replica.applied) == 1
