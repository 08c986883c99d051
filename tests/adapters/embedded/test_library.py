from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adapters import Unavailable, VersionMismatch
from adapters.embedded import Library
from adapters.embedded.manifest import Manifest
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import KeywordPart
from adapters.vector.embedded import VectorPart
from tests.conftest import entry

Open = Callable[[], Library]


def ids(library: Library) -> set[str]:
    catalog = library.current().catalog
    return {
        segment.keys[row][2]
        for position in range(len(catalog))
        if catalog.live[position]
        for segment, row in [catalog.locate(position)]
    }


def consistent(library: Library) -> bool:
    return set(library.documents_by_part().values()) == {library.current().catalog.count}


def test_each_write_is_a_version(open_library: Open) -> None:
    library = open_library()
    assert library.generation() == 0
    assert library.write_now([entry("a")]) == 1
    assert library.write_now([entry("b")]) == 2
    assert library.generation() == 2


def test_a_write_that_changes_nothing_makes_no_version(open_library: Open) -> None:
    library = open_library()
    library.write_now([entry("a")])
    assert library.write_now([], [("default", "default", "b")]) == 1


def test_many_small_writes_leave_few_segments_and_all_documents(open_library: Open) -> None:
    library = open_library()
    dice = random.Random(0)
    expected: dict[str, str] = {}
    for step in range(120):
        id_ = str(dice.randrange(60))
        if dice.random() < 0.25:
            library.write_now([], [("default", "default", id_)])
            expected.pop(id_, None)
        else:
            library.write_now([entry(id_, f"step {step}")])
            expected[id_] = f"step {step}"
        assert library.current().catalog.count == len(expected)
    assert consistent(library)
    assert ids(library) == set(expected)
    assert len(library.current().catalog.segments) <= 8
    for id_, text in expected.items():
        position = library.current().catalog.position(("default", "default", id_))
        assert position is not None
        assert library.current().catalog.record(position).document.text == text


def test_optimizing_makes_one_segment_and_changes_nothing_else(open_library: Open) -> None:
    library = open_library()
    library.write_now([entry(str(n)) for n in range(40)])
    library.write_now([entry(str(n)) for n in range(3)], [("default", "default", "7")])
    before = ids(library)
    assert library.current().catalog.scattered() is False
    library.optimize()
    catalog = library.current().catalog
    assert (len(catalog.segments), len(catalog), catalog.count) == (1, 39, 39)
    assert ids(library) == before
    assert consistent(library)
    version = library.generation()
    library.optimize()
    assert library.generation() == version


def test_a_keyword_index_in_many_pieces_is_scattered_until_it_is_put_into_one(tmp_path: Path) -> None:
    part = KeywordPart()
    library = Library(tmp_path / "index", (part,), "test-1")
    library.write_now([entry(str(n)) for n in range(100)])
    assert library.scattered() is False
    for n in range(3):
        library.write_now([entry(f"later {n}")])
    assert part.pieces(library.current().index(part)) > 2
    assert library.current().catalog.scattered() is False
    assert library.scattered() is True
    library.optimize()
    assert part.pieces(library.current().index(part)) == 1
    assert library.scattered() is False
    assert ids(library) == {*(str(n) for n in range(100)), *(f"later {n}" for n in range(3))}


def test_what_no_version_names_is_removed(open_library: Open, tmp_path: Path) -> None:
    library = open_library()
    for n in range(6):
        library.write_now([entry(str(n))])
    for part in ("vector", "keyword", "graph", "dead"):
        assert len(list((tmp_path / "index" / part).iterdir())) == 2
    named = {s.name for s in library.current().catalog.segments}
    on_disk = {path.name for path in (tmp_path / "index" / "segments").iterdir()}
    assert named <= on_disk
    assert len(on_disk) <= len(named) + 3


def test_a_snapshot_stays_as_it_was(open_library: Open) -> None:
    library = open_library()
    library.write_now([entry("a", "as it was")])
    held = library.current()
    for n in range(5):
        library.write_now([entry("a", f"as it is {n}")])
    assert held.catalog.record(0).document.text == "as it was"
    assert held.catalog.count == 1


def test_an_index_of_another_identity_is_refused(open_library: Open, tmp_path: Path) -> None:
    open_library().write_now([entry("a")])
    with pytest.raises(VersionMismatch, match=r"was built as 'test-1', the settings ask for 'test-2'"):
        Library(tmp_path / "index", (VectorPart(),), "test-2")


def test_an_index_of_another_identity_may_be_read_and_is_never_written(open_library: Open, tmp_path: Path) -> None:
    open_library().write_now([entry("a")])
    lenient = Library(tmp_path / "index", (VectorPart(), KeywordPart(), GraphPart()), "test-2", strict=False)
    assert lenient.index_version == "test-1"
    assert lenient.mismatch
    assert "was built as 'test-1', the settings ask for 'test-2'" in lenient.mismatch
    assert lenient.current().catalog.count == 1
    with pytest.raises(VersionMismatch):
        lenient.write_now([entry("b")])
    with pytest.raises(VersionMismatch):
        lenient.optimize()
    assert open_library().mismatch is None
    assert open_library().current().catalog.count == 1


def test_a_damaged_manifest_is_named(open_library: Open, tmp_path: Path) -> None:
    open_library().write_now([entry("a")])
    (tmp_path / "index" / "manifest.json").write_text("{")
    with pytest.raises(Unavailable, match=r"manifest\.json is damaged"):
        open_library()


def test_a_missing_file_is_named(open_library: Open, tmp_path: Path) -> None:
    open_library().write_now([entry("a")])
    next((tmp_path / "index" / "graph").glob("*/offsets.npy")).unlink()
    with pytest.raises(Unavailable, match=r"cannot be opened: .*offsets\.npy"):
        open_library()


def test_a_sample_is_spread_over_what_lives(open_library: Open) -> None:
    library = open_library()
    assert library.entries(5) == []
    library.write_now([entry(f"{n:02}") for n in range(10)], ())
    library.write_now([], [("default", "default", "00")])
    assert [e.record.document.id for e in library.entries(3)] == ["01", "05", "09"]
    assert len(library.entries(100)) == 9


def test_a_reader_is_never_without_a_version_while_one_writes(open_library: Open) -> None:
    """The writer sweeps old versions away under the reader, who must always come to hold a whole one."""
    writer, reader = open_library(), open_library()
    writer.write_now([entry("0")])
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
        writer.write_now([entry(str(n))])
    done.set()
    thread.join()
    assert not failures
    reader.refresh()
    assert ids(reader) == ids(writer)


@pytest.mark.parametrize("part", ["vector", "keyword", "graph"])
def test_a_version_whose_files_were_swept_away_is_followed_by_the_newest(
    open_library: Open, tmp_path: Path, part: str
) -> None:
    """What a reader meets that opens a version while two newer ones are written."""
    writer, reader = open_library(), open_library()
    writer.write_now([entry("a")])
    old = (tmp_path / "index" / "manifest.json").read_bytes()
    folder = tmp_path / "index" / part / f"{1:012d}"
    writer.write_now([entry("b")])
    shutil.rmtree(folder)
    newest = Manifest.read(tmp_path / "index", "test-1")
    reader._snapshot = reader._open(msgspec.json.decode(old, type=Manifest), reader._snapshot)
    assert reader.generation() == newest.version == 2
    assert ids(reader) == {"a", "b"}
    assert not folder.exists(), "opening made files"


def test_a_disk_that_is_full_changes_nothing(open_library: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    library = open_library()
    library.write_now([entry("a")])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("adapters.embedded.library.segment.write", full)
        with pytest.raises(Unavailable, match=r"cannot be written: .*No space left"):
            library.write_now([entry("b")])
    assert ids(library) == ids(open_library()) == {"a"}
    library.write_now([entry("b")])
    assert ids(library) == {"a", "b"}


def test_following_never_undoes_a_write_of_our_own(open_library: Open) -> None:
    library = open_library()
    done = threading.Event()

    def follow() -> None:
        while not done.is_set():
            library.refresh()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        for n in range(40):
            version = library.write_now([entry(str(n))])
            assert library.generation() == version
            assert library.current().catalog.position(("default", "default", str(n))) is not None
    finally:
        done.set()
        thread.join()


def _write_some(folder: Path, name: str) -> None:
    library = Library(folder, (VectorPart(), KeywordPart(), GraphPart()), "test-1")
    for n in range(8):
        library.write_now([entry(f"{name}{n}")])


def test_two_processes_that_write_lose_nothing(open_library: Open, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_some, args=(tmp_path / "index", name)) for name in "ab"]
    for process in writers:
        process.start()
    for process in writers:
        process.join(60)
        assert process.exitcode == 0
    library = open_library()
    assert ids(library) == {f"{name}{n}" for name in "ab" for n in range(8)}
    assert library.generation() == 16
    assert consistent(library)


_KILLED = """
import sys
from pathlib import Path
from tests.conftest import entry
from adapters.embedded import Library
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import KeywordPart
from adapters.vector.embedded import VectorPart
library = Library(Path(sys.argv[1]), (VectorPart(), KeywordPart(), GraphPart()), "test-1")
for n in range(int(sys.argv[2]), 1_000_000):
    library.write_now([entry(f"{n}-{part}") for part in range(3)])
    print(n, flush=True)
"""


def test_kill_9_at_any_moment_leaves_whole_versions_and_all_that_was_acknowledged(
    open_library: Open, tmp_path: Path
) -> None:
    dice = random.Random(7)
    acknowledged = -1
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(tmp_path / "index"), str(acknowledged + 1)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        ) as process:
            assert process.stdout is not None
            acknowledged = int(process.stdout.readline())
            time.sleep(dice.uniform(0, 0.4))  # the moment is the point: it must not be chosen
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])

        library = open_library()
        held = ids(library)
        assert consistent(library)
        assert {f"{n}-{part}" for n in range(acknowledged + 1) for part in range(3)} <= held
        # What was written but not acknowledged is there whole or not at all.
        assert len(held) % 3 == 0
        assert len(held) <= 3 * (acknowledged + 2)
