from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import Damaged, Unavailable, VersionMismatch
from adapters.engine import EmbeddedIndex, view
from adapters.engine.manifest import Manifest
from adapters.engine.segment_set import Mask, SegmentSet
from adapters.graph.component import GraphComponent
from adapters.keyword.component import KeywordComponent
from adapters.model.filter import EVERYTHING, Filter
from adapters.vector.embedded import VectorComponent
from tests.conftest import vector_record

Open = Callable[[], EmbeddedIndex]


def living_ids(index: EmbeddedIndex) -> set[str]:
    segments = index.current().segments
    return {
        segment.id(row)
        for position in range(len(segments))
        if segments.live[position]
        for segment, row in [segments.locate(position)]
    }


def consistent(index: EmbeddedIndex) -> bool:
    return set(index.documents_by_component().values()) == {index.current().segments.count}


@pytest.mark.anyio
async def test_many_values_are_counted_in_a_thread_and_the_mask_is_not(
    open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks are cached in tables that only the event loop uses."""
    in_main_thread: list[bool] = []
    mask = SegmentSet.mask

    def recorded(segments: SegmentSet, condition: Filter) -> Mask:
        in_main_thread.append(threading.current_thread() is threading.main_thread())
        return mask(segments, condition)

    monkeypatch.setattr(SegmentSet, "mask", recorded)
    monkeypatch.setattr(view, "_MAX_COUNTED", 0)
    index = open_index()
    index.write_blocking([vector_record("a", collection="x"), vector_record("b", collection="y")])
    assert await index.counts("collection", EVERYTHING) == {"x": 1, "y": 1}
    assert in_main_thread == [True]


def test_each_write_is_a_commit(open_index: Open) -> None:
    index = open_index()
    assert index.generation() == 0
    assert index.write_blocking([vector_record("a")]).generation == 1
    assert index.write_blocking([vector_record("b")]).generation == 2
    assert index.generation() == 2


def test_a_write_without_changes_is_not_a_commit(open_index: Open) -> None:
    index = open_index()
    index.write_blocking([vector_record("a")])
    assert index.write_blocking([], [("default", "default", "b")]).generation == 1


def test_many_small_writes_leave_few_segments_and_all_documents(open_index: Open) -> None:
    index = open_index()
    dice = random.Random(0)
    expected: dict[str, str] = {}
    for step in range(120):
        id_ = str(dice.randrange(60))
        if dice.random() < 0.25:
            index.write_blocking([], [("default", "default", id_)])
            expected.pop(id_, None)
        else:
            index.write_blocking([vector_record(id_, f"step {step}")])
            expected[id_] = f"step {step}"
        assert index.current().segments.count == len(expected)
    assert consistent(index)
    assert living_ids(index) == set(expected)
    assert len(index.current().segments.segments) <= 8
    for id_, text in expected.items():
        position = index.current().segments.position(("default", "default", id_))
        assert position is not None
        assert index.current().segments.record(position).document.text == text


def test_optimizing_merges_all_segments_and_changes_no_document(open_index: Open) -> None:
    index = open_index()
    index.write_blocking([vector_record(str(n)) for n in range(40)])
    index.write_blocking([vector_record(str(n)) for n in range(3)], [("default", "default", "7")])
    before = living_ids(index)
    assert index.current().segments.is_scattered() is False
    index.optimize()
    segments = index.current().segments
    assert (len(segments.segments), len(segments), segments.count) == (1, 39, 39)
    assert living_ids(index) == before
    assert consistent(index)
    generation = index.generation()
    index.optimize()
    assert index.generation() == generation


def test_a_keyword_index_of_many_fragments_needs_optimizing(tmp_path: Path) -> None:
    component = KeywordComponent()
    index = EmbeddedIndex(tmp_path / "index", (component,), "test-1")
    index.write_blocking([vector_record(str(n)) for n in range(100)])
    assert index.needs_optimizing() is False
    for n in range(3):
        index.write_blocking([vector_record(f"later {n}")])
    assert component.fragment_count(index.current().component(component)) > 2
    assert index.current().segments.is_scattered() is False
    assert index.needs_optimizing() is True
    index.optimize()
    assert component.fragment_count(index.current().component(component)) == 1
    assert index.needs_optimizing() is False
    assert living_ids(index) == {*(str(n) for n in range(100)), *(f"later {n}" for n in range(3))}


def test_files_of_old_commits_are_removed(open_index: Open, tmp_path: Path) -> None:
    index = open_index()
    for n in range(6):
        index.write_blocking([vector_record(str(n))])
    for folder in ("vector", "keyword", "graph", "dead"):
        assert len(list((tmp_path / "index" / folder).iterdir())) == 2
    current = {s.name for s in index.current().segments.segments}
    on_disk = {path.name for path in (tmp_path / "index" / "segments").iterdir()}
    assert current <= on_disk
    assert len(on_disk) <= len(current) + 3


def test_an_index_of_another_build_is_not_opened(open_index: Open, tmp_path: Path) -> None:
    open_index().write_blocking([vector_record("a")])
    with pytest.raises(VersionMismatch, match=r"was built as 'test-1', the settings require 'test-2'"):
        EmbeddedIndex(tmp_path / "index", (VectorComponent(),), "test-2")


def test_without_strict_an_index_of_another_build_is_read_and_never_written(open_index: Open, tmp_path: Path) -> None:
    open_index().write_blocking([vector_record("a")])
    lenient = EmbeddedIndex(
        tmp_path / "index", (VectorComponent(), KeywordComponent(), GraphComponent()), "test-2", strict=False
    )
    assert lenient.build_id == "test-1"
    assert lenient.mismatch
    assert "was built as 'test-1', the settings require 'test-2'" in lenient.mismatch
    assert lenient.current().segments.count == 1
    with pytest.raises(VersionMismatch):
        lenient.write_blocking([vector_record("b")])
    with pytest.raises(VersionMismatch):
        lenient.optimize()
    assert open_index().mismatch is None
    assert open_index().current().segments.count == 1


def test_a_damaged_manifest_is_reported(open_index: Open, tmp_path: Path) -> None:
    open_index().write_blocking([vector_record("a")])
    (tmp_path / "index" / "manifest.json").write_text("{")
    with pytest.raises(Damaged, match="a stored file is damaged") as raised:
        open_index()
    assert "manifest.json" in raised.value.detail


def test_a_missing_file_is_reported(open_index: Open, tmp_path: Path) -> None:
    open_index().write_blocking([vector_record("a")])
    next((tmp_path / "index" / "graph").glob("*/*/offsets.npy")).unlink()
    with pytest.raises(Unavailable, match="cannot be opened") as raised:
        open_index()
    assert "offsets.npy" in raised.value.detail


def test_a_sample_is_evenly_spread_over_the_living_documents(open_index: Open) -> None:
    index = open_index()
    assert index.current().sample_with_vectors(5) == []
    index.write_blocking([vector_record(f"{n:02}") for n in range(10)], ())
    index.write_blocking([], [("default", "default", "00")])
    assert [each.record.document.id for each in index.current().sample_with_vectors(3)] == ["01", "05", "09"]
    assert len(index.current().sample_with_vectors(100)) == 9


@pytest.mark.process
def test_a_reader_always_has_a_complete_commit_while_another_process_writes(open_index: Open) -> None:
    """The writer removes the files of old commits while the reader opens them."""
    writer, reader = open_index(), open_index()
    writer.write_blocking([vector_record("0")])
    done = threading.Event()
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            while not done.is_set():
                reader.refresh()
                assert consistent(reader)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    for n in range(40):
        writer.write_blocking([vector_record(str(n))])
    done.set()
    thread.join()
    assert not failures
    reader.refresh()
    assert living_ids(reader) == living_ids(writer)


@pytest.mark.parametrize("component", ["vector", "keyword", "graph"])
def test_a_reader_whose_commit_was_removed_opens_the_newest_one(
    open_index: Open, tmp_path: Path, component: str
) -> None:
    """The state that a reader finds if two newer commits are written while it opens one."""
    writer, reader = open_index(), open_index()
    writer.write_blocking([vector_record("a")])
    old = Manifest.read(tmp_path / "index", "test-1")
    folder = tmp_path / "index" / component / f"{1:012d}"
    writer.write_blocking([vector_record("b")])
    shutil.rmtree(folder)
    newest = Manifest.read(tmp_path / "index", "test-1")
    reader._view = reader._open(old, reader._view)
    assert reader.generation() == newest.generation == 2
    assert living_ids(reader) == {"a", "b"}
    assert not folder.exists(), "opening created files"


def test_a_full_disk_changes_nothing(open_index: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index()
    index.write_blocking([vector_record("a")])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("adapters.engine.index.segment.write", full)
        with pytest.raises(Unavailable, match="cannot be written") as raised:
            index.write_blocking([vector_record("b")])
        assert "No space left" in raised.value.detail
    assert living_ids(index) == living_ids(open_index()) == {"a"}
    index.write_blocking([vector_record("b")])
    assert living_ids(index) == {"a", "b"}


def test_refreshing_never_undoes_a_write_of_the_same_process(open_index: Open) -> None:
    index = open_index()
    done = threading.Event()

    def follow() -> None:
        while not done.is_set():
            index.refresh()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        for n in range(40):
            generation = index.write_blocking([vector_record(str(n))]).generation
            assert index.generation() == generation
            assert index.current().segments.position(("default", "default", str(n))) is not None
    finally:
        done.set()
        thread.join()


def _write_some(folder: Path, name: str) -> None:
    index = EmbeddedIndex(folder, (VectorComponent(), KeywordComponent(), GraphComponent()), "test-1")
    for n in range(8):
        index.write_blocking([vector_record(f"{name}{n}")])


@pytest.mark.process
def test_two_writing_processes_lose_no_document(open_index: Open, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_some, args=(tmp_path / "index", name)) for name in "ab"]
    for process in writers:
        process.start()
    for process in writers:
        process.join(60)
        assert process.exitcode == 0
    index = open_index()
    assert living_ids(index) == {f"{name}{n}" for name in "ab" for n in range(8)}
    assert index.generation() == 16
    assert consistent(index)


_KILLED = """
import sys
from pathlib import Path
from tests.conftest import vector_record
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.keyword.component import KeywordComponent
from adapters.vector.embedded import VectorComponent
index = EmbeddedIndex(Path(sys.argv[1]), (VectorComponent(), KeywordComponent(), GraphComponent()), "test-1")
for n in range(int(sys.argv[2]), 1_000_000):
    index.write_blocking([vector_record(f"{n}-{document}") for document in range(3)])
    print(n, flush=True)
"""


@pytest.mark.process
def test_kill_9_leaves_complete_commits_with_all_acknowledged_writes(
    python: str, open_index: Open, tmp_path: Path
) -> None:
    dice = random.Random(7)
    acknowledged = -1
    for _ in range(6):
        with subprocess.Popen(
            [python, "-c", _KILLED, str(tmp_path / "index"), str(acknowledged + 1)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        ) as process:
            assert process.stdout is not None
            acknowledged = int(process.stdout.readline())
            time.sleep(dice.uniform(0, 0.4))  # at a random moment: that is what is tested
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])

        index = open_index()
        found = living_ids(index)
        assert consistent(index)
        assert {f"{n}-{document}" for n in range(acknowledged + 1) for document in range(3)} <= found
        # A write that was not acknowledged is complete or absent.
        assert len(found) % 3 == 0
        assert len(found) <= 3 * (acknowledged + 2)
