"""Replication with replicas that fail on purpose; real servers are killed by ``make bench-crash``."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from adapters import Rejected, Unavailable, Viewer
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replication import Replication
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, key, open_log, open_replication

pytestmark = pytest.mark.anyio

Replicas = dict[str, MemoryReplica]


@pytest.fixture
def replicas() -> Replicas:
    return {"one": MemoryReplica(), "two": MemoryReplica()}


async def test_a_write_reaches_every_replica_and_is_removed_from_the_log(tmp_path: Path, replicas: Replicas) -> None:
    replication = open_replication(tmp_path, replicas)
    first = await replication.write([vector_record("a", "1"), vector_record("b", "1")], [])
    assert replication.generation() == first.generation
    second = await replication.write([vector_record("a", "2")], [key("b")])
    assert not first.pending
    assert second.generation > first.generation == min(replicas["one"].applied)
    assert replicas["one"].texts == replicas["two"].texts == {"a": "2"}
    assert list((tmp_path / "log").glob("*.write")) == []
    assert [replication.lag(name) for name in replication.replicas] == [0, 0]


async def test_of_one_id_in_one_write_the_last_record_counts_and_more_than_a_delete(
    tmp_path: Path, replicas: Replicas
) -> None:
    await open_replication(tmp_path, replicas).write([vector_record("a", "1"), vector_record("a", "2")], [key("a")])
    assert replicas["one"].texts == {"a": "2"}


async def test_a_replica_that_is_away_is_named_and_gets_every_write_in_order_later(
    tmp_path: Path, replicas: Replicas
) -> None:
    replicas["two"].error = Unavailable("away")
    replication = open_replication(tmp_path, replicas)
    for text in ("1", "2", "3"):
        acknowledgement = await replication.write([vector_record("a", text)], [])
        assert acknowledgement.pending == {"two": "away"}
    assert replicas["one"].texts == {"a": "3"}
    assert [replication.lag(name) for name in replicas] == [0, 3]
    assert replication.has_unapplied()
    assert await replication.counts() == {"one": 1, "two": "away"}
    replicas["two"].error = None
    assert await replication.apply_unapplied() == {}
    assert replicas["two"].texts == {"a": "3"}
    assert replicas["two"].applied == replicas["one"].applied == sorted(replicas["one"].applied)
    assert list((tmp_path / "log").glob("*.write")) == []
    assert not replication.has_unapplied()


async def test_a_restart_continues_where_the_process_stopped(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = Unavailable("away")
    first = await open_replication(tmp_path, replicas).write([vector_record("a", "1")], [])
    replicas["two"].error = None
    replication = open_replication(tmp_path, replicas)
    assert replication.generation() == first.generation
    assert await replication.apply_unapplied() == {}
    assert replicas["two"].texts == {"a": "1"}
    assert len(replicas["one"].applied) == 1


async def test_a_write_that_was_applied_but_not_marked_is_applied_again(tmp_path: Path, replicas: Replicas) -> None:
    """A crash between the response of a replica and :meth:`WriteLog.mark_applied`."""
    sequence = open_log(tmp_path).append(Write.of([vector_record("a", "1")], []), replicas)
    await replicas["one"].apply(sequence, [vector_record("a", "1")], [])
    await open_replication(tmp_path, replicas).apply_unapplied()
    assert replicas["one"].applied == [sequence, sequence]
    assert replicas["one"].texts == replicas["two"].texts == {"a": "1"}


@pytest.mark.parametrize("refused", [{7}, {0}, {6, 7}, set(range(7))])
async def test_refused_documents_do_not_stop_the_others(tmp_path: Path, replicas: Replicas, refused: set[int]) -> None:
    replicas["two"].refused_ids = {str(n) for n in refused}
    replication = open_replication(tmp_path, replicas)
    acknowledgement = await replication.write([vector_record(str(n)) for n in range(20)], [key("x")])
    assert acknowledgement.pending == {}
    assert acknowledgement.rejected == {key(str(n)): {"two": f"refuses ['{n}']"} for n in refused}
    assert len(replicas["one"].texts) == 20
    assert sorted(replicas["two"].texts, key=int) == [str(n) for n in range(20) if n not in refused]
    assert (await replication.write([vector_record("after")], [])).rejected == {}


async def test_if_a_replica_refuses_every_document_none_is_rejected(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = Rejected("nothing at all")
    replication = open_replication(tmp_path, replicas)
    acknowledgement = await replication.write([vector_record("a"), vector_record("b")], [])
    assert acknowledgement.pending == {"two": "nothing at all"}
    assert acknowledgement.rejected == {}
    replicas["two"].error = None
    await replication.apply_unapplied()
    assert set(replicas["two"].texts) == {"a", "b"}


async def test_a_replica_that_hangs_delays_other_writers_no_longer_than_the_time_limit(
    tmp_path: Path, replicas: Replicas
) -> None:
    """The first write waits for it, as long as its adapter lets it; the writes behind it up to the time limit."""
    replicas["two"].resume = anyio.Event()
    first, second = (open_replication(tmp_path, replicas, slot_timeout_s=0.05) for _ in range(2))
    async with anyio.create_task_group() as group:
        group.start_soon(first.write, [vector_record("a")], [])
        await replicas["two"].reached.wait()
        for writer in (second, first):
            acknowledgement = await writer.write([vector_record("b")], [])
            assert acknowledgement.pending == {"two": "is still applying earlier writes after 0.05 s"}
            assert set(replicas["one"].texts) == {"a", "b"}
        replicas["two"].resume.set()
    assert await second.apply_unapplied() == {}
    assert set(replicas["two"].texts) == {"a", "b"}


async def test_the_writer_gets_the_rejections_whichever_process_applied_its_write(
    tmp_path: Path, replicas: Replicas
) -> None:
    replicas["one"].refused_ids, replicas["one"].resume = {"a"}, anyio.Event()
    writer, other = open_replication(tmp_path, replicas), open_replication(tmp_path, replicas)
    acknowledgements = {}

    async def write(name: str, by: Replication) -> None:
        acknowledgements[name] = await by.write([vector_record(name), vector_record(f"{name} too")], [])

    async with anyio.create_task_group() as group:
        group.start_soon(write, "before", other)
        await replicas["one"].reached.wait()
        for name, by in (("a", writer), ("b", other)):
            group.start_soon(write, name, by)
        await anyio.wait_all_tasks_blocked()
        replicas["one"].resume.set()
    assert acknowledgements["a"].rejected == {key("a"): {"one": "refuses ['a']"}}
    assert acknowledgements["before"].rejected == acknowledgements["b"].rejected == {}
    assert set(replicas["one"].texts) == {"before", "before too", "a too", "b", "b too"}


async def test_a_full_log_accepts_no_write_and_names_the_replica_that_lags(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = Unavailable("away")
    replication = open_replication(tmp_path, replicas, max_bytes=10)
    await replication.write([vector_record("a")], [])
    with pytest.raises(Unavailable, match=r"bytes that two could not apply yet"):
        await replication.write([vector_record("b")], [])
    assert set(replicas["one"].texts) == {"a"}


async def test_concurrent_writers_of_two_processes_write_in_order(tmp_path: Path, replicas: Replicas) -> None:
    one, other = open_replication(tmp_path, replicas), open_replication(tmp_path, replicas)
    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon((one, other)[n % 2].write, [vector_record(str(n))], [])
    assert len(replicas["one"].texts) == 10
    assert replicas["one"].applied == sorted(set(replicas["one"].applied))
    one.refresh()
    assert one.generation() == replicas["one"].applied[-1]


async def test_refresh_reads_the_writes_of_another_process(tmp_path: Path, replicas: Replicas) -> None:
    here, elsewhere = open_replication(tmp_path, replicas), open_replication(tmp_path, replicas)
    generation, version = here.generation(), here.data_version()
    acknowledgement = await elsewhere.write([vector_record("a")], [])
    assert (here.generation(), here.data_version()) == (generation, version)
    here.refresh()
    assert here.generation() == acknowledgement.generation > generation
    assert here.data_version() > version


async def test_the_data_version_changes_when_any_replica_applies_a_write(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = Unavailable("away")
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a")], [])
    generation, version = replication.generation(), replication.data_version()
    replicas["two"].error = None
    await replication.apply_unapplied()
    # The newest write is the same, but searches of the second replica find it only now.
    assert replication.generation() == generation
    assert replication.data_version() > version


async def test_a_write_that_was_applied_but_not_truncated_before_a_crash_is_truncated(
    tmp_path: Path, replicas: Replicas
) -> None:
    log = open_log(tmp_path)
    sequence = log.append(Write.of([vector_record("a")], []), replicas)
    for name in replicas:
        log.mark_applied(name, sequence)
    assert await open_replication(tmp_path, replicas).apply_unapplied() == {}
    assert log.is_empty()


async def test_an_empty_write_stores_nothing_but_applies_waiting_writes(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = Unavailable("away")
    replication = open_replication(tmp_path, replicas)
    first = await replication.write([vector_record("a")], [])
    assert (await replication.write([], [])).pending == {"two": "away"}
    replicas["two"].error = None
    acknowledgement = await replication.write([], [])
    assert (acknowledgement.generation, acknowledgement.pending) == (first.generation, {})
    assert replicas["two"].applied == [first.generation]


async def test_a_replica_that_is_added_later_has_missed_history(tmp_path: Path, replicas: Replicas) -> None:
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a")], [])
    assert replication.with_missed_history() == []
    replicas["late"] = MemoryReplica()
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("b")], [])
    assert replication.with_missed_history() == ["late"]
    assert replicas["late"].texts == {"b": "text of b"}


async def test_a_defect_in_one_replica_does_not_stop_the_others(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = KeyError("a defect")
    acknowledgement = await open_replication(tmp_path, replicas).write([vector_record("a")], [])
    assert acknowledgement.pending == {"two": "internal error: KeyError"}
    assert replicas["one"].texts == {"a": "text of a"}


async def test_a_damaged_write_is_set_aside_and_those_after_it_are_applied(tmp_path: Path, replicas: Replicas) -> None:
    replicas["two"].error = Unavailable("away")
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a")], [])
    (file,) = (tmp_path / "log").glob("*.write")
    file.write_bytes(b"?")
    await replication.write([vector_record("b")], [])
    replicas["two"].error = None
    assert await replication.apply_unapplied() == {}
    assert replicas["two"].texts == {"b": "text of b"}
    assert replication.damaged_writes() == [str(file.with_suffix(".damaged"))]


async def test_a_quarantined_document_stays_protected(tmp_path: Path, replicas: Replicas) -> None:
    """The replica that refuses it is the one that documents are read from, so it has no restricted document."""
    replicas["one"].refused_ids = {"a"}
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a", "what few may read", sensitivity="restricted")], [])
    assert replicas["one"].texts == {}
    replicas["one"].refused_ids = set()
    acknowledgement = await replication.write([vector_record("a", "replaced")], [key("b")], Viewer("normal"))
    assert acknowledgement.hidden == {key("a")}
    assert replicas["two"].texts == {"a": "what few may read"}
    assert await replication.retry_refused() == 1
    assert replicas["one"].texts == {"a": "what few may read"}


async def test_what_another_replica_refused_hides_nothing(tmp_path: Path, replicas: Replicas) -> None:
    """The replica that documents are read from has the newest version of the document, and decides by it."""
    replicas["two"].refused_ids = {"a"}
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a", "restricted at first", sensitivity="restricted")], [])
    replicas["two"].error = Unavailable("away")
    await replication.write([vector_record("a", "normal since")], [])
    acknowledgement = await replication.write([vector_record("a", "replaced")], [], Viewer("normal"))
    assert acknowledgement.hidden == frozenset()
    assert replicas["one"].texts == {"a": "replaced"}


async def test_writers_learn_the_store_that_lags_and_not_its_address(tmp_path: Path) -> None:
    replicas = {"vector embedded": MemoryReplica(), "keyword http://10.0.0.7:9200 trivium-1": MemoryReplica()}
    replicas["keyword http://10.0.0.7:9200 trivium-1"].refused_ids = {"a"}
    replication = open_replication(tmp_path, replicas)
    acknowledgement = await replication.write([vector_record("a"), vector_record("b")], [])
    assert acknowledgement.rejected == {key("a"): {"keyword": "refuses ['a']"}}
    replicas["keyword http://10.0.0.7:9200 trivium-1"].error = Unavailable("away")
    assert (await replication.write([vector_record("c")], [])).pending == {"keyword": "away"}


async def test_unapplied_writes_have_the_times_of_their_sequence_numbers(tmp_path: Path, replicas: Replicas) -> None:
    replication = open_replication(tmp_path, replicas)
    assert replication.unapplied_at("two") == []
    replicas["two"].error = Unavailable("away")
    for text in ("1", "2"):
        await replication.write([vector_record("a", text)], [])
    sequences = sorted(int(path.stem) for path in (tmp_path / "log").glob("*.write"))
    assert replication.unapplied_at("two") == [sequence / 1_000_000 for sequence in sequences]
    assert replication.unapplied_at("one") == []


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


async def test_a_process_that_only_reads_refuses_writes_and_applies_none(
    tmp_path: Path, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests run as root, who may write everywhere: that the folder is read-only is the answer of a stand-in."""
    replicas["two"].error = Unavailable("away")
    writer = open_replication(tmp_path, replicas)
    acknowledged = await writer.write([vector_record("a", "1")], [])
    replicas["two"].error = None
    reader = open_replication(tmp_path, replicas)
    monkeypatch.setattr(WriteLog, "is_writable", lambda _: False)
    before = names(tmp_path)
    with pytest.raises(Unavailable, match="is read-only"):
        await reader.write([vector_record("b", "1")], [])
    assert await reader.apply_unapplied() == {}
    assert replicas["two"].texts == {}
    assert names(tmp_path) == before
    reader.refresh()
    assert reader.generation() == acknowledged.generation
    monkeypatch.undo()
    assert await writer.apply_unapplied() == {}
    assert replicas["two"].texts == {"a": "1"}
