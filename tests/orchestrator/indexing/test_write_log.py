"""The write log in a folder: durable, in order, shared by processes, and bounded."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from adapters import AdapterError, Unavailable, Viewer
from orchestrator.indexing.log import write_log
from orchestrator.indexing.log.write import DamagedWrite, Write
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replica_applier import ReplicaApplier
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_log, upsert
from tests.random_cases import RANDOM_CASES
from tests.read_only import on_a_read_only_disk

DELETE = Write.of([], [key("a")])
REPLICAS = ("one", "two")


@pytest.fixture
def log(tmp_path: Path) -> WriteLog:
    return open_log(tmp_path)


def test_a_write_is_the_same_after_the_disk(log: WriteLog) -> None:
    written = Write.of([vector_record("a", "text", seed=1), vector_record("b", seed=2)], [key("c")])
    read = log.read(log.append(written, REPLICAS))
    assert [each.record for each in read.upserts()] == written.records
    assert read.upserts()[1].vectors.tolist() == vector_record("b", seed=2).vectors.tolist()
    assert read.deletes == [key("c")]


def test_of_several_records_with_one_key_the_last_one_counts_and_more_than_a_delete() -> None:
    write = Write.of([vector_record("a", "1", seed=1), vector_record("a", "2", seed=2)], [key("a"), key("b"), key("b")])
    (only,) = write.upserts()
    assert (only.record.document.text, only.vectors.tolist()) == ("2", vector_record("a", seed=2).vectors.tolist())
    assert write.deletes == [key("b")]


def test_a_write_is_on_disk_before_its_name_is_and_its_name_before_append_returns(
    log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between any two of these steps leaves either no write or a complete one."""
    steps: list[str] = []
    real_sync, real_rename = os.fsync, Path.rename

    def sync(handle: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().suffix or 'folder'}")
        real_sync(handle)

    def rename(path: Path, target: Path) -> Path:
        steps.append(f"rename to {target.suffix}")
        return real_rename(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "rename", rename)
    log.append(DELETE, REPLICAS)
    assert steps == ["sync .draft", "rename to .write", "sync folder"]


def test_a_draft_of_a_crashed_process_is_no_write(tmp_path: Path, log: WriteLog) -> None:
    sequence = log.append(DELETE, REPLICAS)
    complete = (tmp_path / "log" / f"{sequence:020d}.write").read_bytes()
    (tmp_path / "log" / f"{sequence + 1:020d}.write.draft").write_bytes(complete[:-1])
    assert open_log(tmp_path).unapplied("one") == [sequence]
    assert log.newest() == sequence


@given(st.data())
def test_an_incomplete_file_is_an_error_that_names_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A disk lost part of the file: the rest is never read as another write."""
    folder = tmp_path_factory.mktemp("log")
    log = open_log(folder)
    sequence = log.append(upsert("a"), REPLICAS)
    (path,) = (folder / "log").glob("*.write")
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DamagedWrite) as raised:
        log.read(sequence)
    assert str(path) in raised.value.detail


def test_a_replica_whose_cursor_is_damaged_gets_every_write_again(tmp_path: Path, log: WriteLog) -> None:
    sequence = log.append(DELETE, REPLICAS)
    log.mark_applied("one", sequence)
    (path,) = (tmp_path / "log").glob("*.cursor")
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    assert log.unapplied("one") == [sequence]


def test_no_flipped_bit_is_delivered(tmp_path: Path, log: WriteLog) -> None:
    """Bits in the writes, in what they must not touch and in the cursors; each alone."""
    writes = {log.append(Write.of([vector_record(id_)], [key("x")], Viewer("public")), REPLICAS): id_ for id_ in "abc"}
    for sequence in writes:
        log.record_hidden(sequence, {key("hidden")})
    last = max(writes)
    log.mark_applied("one", last)
    log.mark_applied("two", min(writes))
    chance = random.Random(1)
    paths = sorted(path for path in (tmp_path / "log").iterdir() if path.is_file() and path.stat().st_size)
    found = 0
    for _ in range(RANDOM_CASES):
        path = chance.choice(paths)
        content = path.read_bytes()
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        for sequence, id_ in writes.items():
            try:
                assert [each.document.id for each in log.read(sequence).records] == [id_]
                assert log.hidden(sequence) == {key("hidden")}
            except DamagedWrite:
                found += 1
        assert log.unapplied("one") in ([], list(writes))
        assert log.unapplied("two") in (list(writes)[1:], list(writes))
        path.write_bytes(content)
    assert found > RANDOM_CASES / 2


@pytest.mark.anyio
async def test_no_write_with_a_flipped_bit_reaches_a_replica(tmp_path: Path, log: WriteLog) -> None:
    """Bits in the writes and in what they must not touch. What is whole is delivered."""
    texts = {id_: f"text of {id_}" for id_ in "abc"}
    for id_, text in texts.items():
        sequence = log.append(
            Write.of([vector_record(id_, text), vector_record("hidden")], [], Viewer("public")), ["one"]
        )
        log.record_hidden(sequence, {key("hidden")})
    chance = random.Random(2)
    for number in range(RANDOM_CASES):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "log", folder / "log")
        path = chance.choice(
            sorted(each for each in (folder / "log").iterdir() if each.suffix in (".write", ".hidden"))
        )
        changed = bytearray(path.read_bytes())
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        replica, damaged = MemoryReplica(), open_log(folder)
        assert await ReplicaApplier(damaged, "one", replica, 30.0, None).catch_up() is None
        assert replica.texts.items() < texts.items()
        assert len(replica.texts) == 2
        assert str(path.with_suffix(".damaged")) in damaged.damaged()
        shutil.rmtree(folder)


def test_every_damaged_file_is_named(tmp_path: Path, log: WriteLog) -> None:
    first = log.append(DELETE, REPLICAS)
    for replica in REPLICAS:
        log.mark_applied(replica, first)
    log.truncate(REPLICAS)
    log.record_hidden(log.append(DELETE, REPLICAS), [key("hidden")])
    log.record_version_offset("one", 7)
    assert log.damaged() == []
    files = sorted(path for path in (tmp_path / "log").iterdir() if path.is_file() and path.stat().st_size)
    assert {path.suffix or path.name for path in files} == {".write", ".hidden", ".cursor", ".offset", "truncated"}
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert log.damaged() == [str(path)]
        path.write_bytes(content)


def test_a_write_under_another_name_is_damaged(tmp_path: Path, log: WriteLog) -> None:
    """Its number is its place in the order."""
    sequence = log.append(DELETE, REPLICAS)
    (path,) = (tmp_path / "log").glob("*.write")
    path.rename(path.with_name(f"{sequence + 1:020d}.write"))
    with pytest.raises(DamagedWrite):
        log.read(sequence + 1)


def test_files_of_others_in_the_folder_do_no_harm(tmp_path: Path, log: WriteLog) -> None:
    for name in ("notes.write", "copy of 1.write", "x.refused", "y.hidden", "z.cursor.bak"):
        (tmp_path / "log" / name).write_text("?")
    sequence = log.append(DELETE, REPLICAS)
    assert log.unapplied("one") == [sequence]
    for replica in REPLICAS:
        log.mark_applied(replica, sequence)
    log.truncate(REPLICAS)
    assert log.is_empty()


def test_only_the_owner_can_read_the_log(tmp_path: Path, log: WriteLog) -> None:
    log.append(DELETE, REPLICAS)
    (path,) = (tmp_path / "log").glob("*.write")
    assert (path.stat().st_mode & 0o077, path.parent.stat().st_mode & 0o077) == (0, 0)


def test_sequence_numbers_grow_even_if_the_clock_does_not(log: WriteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_log, "time_ns", lambda: 5_000)
    assert [log.append(DELETE, []) for _ in range(3)] == [5, 6, 7]
    log.mark_applied("one", 7)
    log.truncate(["one"])
    assert log.append(DELETE, []) == 8
    monkeypatch.setattr(write_log, "time_ns", lambda: 1_000)
    assert log.append(DELETE, []) == 9
    monkeypatch.setattr(write_log, "time_ns", lambda: 80_000)
    assert log.append(DELETE, []) == 80


def test_a_log_that_is_full_stores_nothing_until_it_is_truncated(tmp_path: Path) -> None:
    size = len(msgpack.encode(DELETE)) + 41  # with the line of the checksum
    log = open_log(tmp_path, max_bytes=2 * size)
    sequences = [log.append(DELETE, REPLICAS) for _ in range(3)]  # the third makes it larger than allowed
    log.mark_applied("one", sequences[-1])
    with pytest.raises(Unavailable, match=f"the write log has {3 * size} bytes that two could not apply yet"):
        log.append(DELETE, REPLICAS)
    assert log.unapplied("two") == sequences
    log.mark_applied("two", sequences[0])
    log.truncate(REPLICAS)
    assert log.append(DELETE, REPLICAS) > sequences[-1]


def test_a_full_disk_is_an_error_and_stores_nothing(
    tmp_path: Path, log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_log, "time_ns", lambda: 5_000)
    draft = tmp_path / "log" / f"{5:020d}.write.draft"
    draft.symlink_to("/dev/full")
    with pytest.raises(Unavailable, match="cannot be written") as raised:
        log.append(DELETE, REPLICAS)
    assert "No space left on device" in raised.value.detail
    assert log.is_empty()
    draft.unlink()
    assert log.append(DELETE, REPLICAS) == 5


def test_truncating_removes_only_what_every_replica_has_applied(log: WriteLog) -> None:
    first, second, third = (log.append(DELETE, REPLICAS) for _ in range(3))
    log.mark_applied("one", third)
    log.truncate(REPLICAS)
    assert log.unapplied("two") == [first, second, third]
    log.mark_applied("two", second)
    log.truncate(REPLICAS)
    assert log.unapplied("two") == [third]
    with pytest.raises(AdapterError, match="cannot be read"):
        log.read(second)
    log.mark_applied("two", third)
    assert not log.is_empty()
    log.truncate(REPLICAS)
    assert log.is_empty()
    assert (log.generation(), log.newest()) == (third, third)


def test_is_applied_and_the_total_follow_each_replica(log: WriteLog) -> None:
    first, second = (log.append(DELETE, REPLICAS) for _ in range(2))
    totals = [log.applied_total()]
    for replica, sequence in (("one", first), ("one", second), ("two", first)):
        assert not log.is_applied(replica, sequence)
        log.mark_applied(replica, sequence)
        assert log.is_applied(replica, sequence)
        totals.append(log.applied_total())
    assert totals == sorted(set(totals))
    assert not log.is_applied("two", second)


def test_a_replica_added_after_truncation_has_missed_history(log: WriteLog) -> None:
    log.mark_applied("one", log.append(DELETE, ["one"]))
    for replica in ("one", "two"):
        log.record_missed_history(replica)
        assert not log.has_missed_history(replica)  # everything is still there
    log.truncate(["one"])
    for replica, misses in (("one", False), ("two", True)):
        log.record_missed_history(replica)
        assert log.has_missed_history(replica) is misses


_APPEND = """
import sys
from pathlib import Path
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.log.write import DamagedWrite, Write
log = WriteLog(Path(sys.argv[1]), 2**30)
sys.stdin.readline()
for number in range(50):
    with log.exclusive():
        print(log.append(Write.of([], [("t", "e", f"{sys.argv[2]}-{number}")]), ["one"]))
"""

_APPLY = """
import sys
from pathlib import Path
from orchestrator.indexing.log.write_log import WriteLog
with WriteLog(Path(sys.argv[1]), 2**30).applying("one") as has_lock:
    print(has_lock, flush=True)
    sys.stdin.readline()
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


@pytest.mark.process
def test_two_processes_append_at_the_same_time_and_nothing_is_lost(tmp_path: Path, log: WriteLog) -> None:
    with start(_APPEND, tmp_path / "log", "x") as one, start(_APPEND, tmp_path / "log", "y") as other:
        for process in (one, other):
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = {"x": one.communicate(timeout=60)[0], "y": other.communicate(timeout=60)[0]}
    stored = {sequence: log.read(sequence).deletes[0][-1] for sequence in log.unapplied("one")}
    assert len(stored) == 100
    for name, output in outputs.items():
        sequences = [int(line) for line in output.split()]
        assert [stored[sequence] for sequence in sequences] == [f"{name}-{number}" for number in range(50)]
        assert sequences == sorted(sequences)


@pytest.mark.process
def test_one_process_at_a_time_applies_and_the_lock_of_a_killed_one_is_free(tmp_path: Path, log: WriteLog) -> None:
    with start(_APPLY, tmp_path / "log") as process:
        assert process.stdout
        assert process.stdout.readline() == "True\n"
        with log.applying("one") as has_lock, log.applying("two") as has_other_lock:
            assert (has_lock, has_other_lock) == (False, True)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    with log.applying("one") as has_lock:
        assert has_lock


@pytest.mark.parametrize("name", ["log", "log/that/no/process/has/written"])
def test_a_log_on_a_read_only_disk_is_not_writable_and_one_that_does_not_exist_is_empty(
    python: str, tmp_path: Path, log: WriteLog, name: str
) -> None:
    assert log.is_writable()
    program = (
        "import sys, pathlib; from orchestrator.indexing.log.write_log import WriteLog; "
        f"log = WriteLog(pathlib.Path(sys.argv[1]).parent / {name!r}, 1000); "
        "print(log.is_writable(), log.is_empty(), log.generation(), log.quarantine.entries())"
    )
    command = [*on_a_read_only_disk(tmp_path / "log"), python, "-c", program, tmp_path / "log"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.stdout == "False True 0 []\n", done.stderr
