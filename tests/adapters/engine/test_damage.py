"""Damage by the disk: it is found, nothing wrong is returned, and undamaged documents are recovered."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from adapters import AdapterError, Damaged, Document, Unavailable, VersionMismatch
from adapters.engine import EmbeddedIndex
from adapters.engine.salvage import Rebuilt, rebuild
from adapters.graph.component import GraphComponent
from adapters.keyword.component import KeywordComponent
from adapters.ports import VectorRecord
from adapters.storage import checked_file, files
from adapters.vector.embedded import VectorComponent
from tests.conftest import vector_record
from tests.random_cases import RANDOM_CASES

COMPONENTS = (VectorComponent(), KeywordComponent(), GraphComponent())
KEY_9 = ("default", "default", "9")
Open = Callable[[], EmbeddedIndex]


class Encoder:
    """Vectors that cannot be mistaken for those of the documents."""

    identity = "test"
    dimension = 384
    encodes_texts = True

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode_documents(self, documents: Sequence[Document]) -> list[np.ndarray]:
        self.texts += [each.text for each in documents]
        vectors = np.zeros_like(vector_record("x").vectors)
        vectors[:, 0] = 1.0
        return [vectors] * len(documents)


@pytest.fixture
def written(open_index: Open, tmp_path: Path) -> Path:
    """An index of two segments with deleted and replaced documents."""
    index = open_index()
    index.write_blocking([vector_record(str(n), f"first {n}", seed=n) for n in range(20)])
    index.write_blocking([vector_record(str(n), f"second {n}", seed=n) for n in range(3)], [KEY_9])
    assert len(index.current().segments.segments) == 2
    return tmp_path / "index"


def texts(index: EmbeddedIndex) -> dict[str, str]:
    segments = index.current().segments
    documents = [segments.record(position).document for position in np.flatnonzero(segments.live).tolist()]
    return {document.id: document.text for document in documents}


EXPECTED = {**{str(n): f"first {n}" for n in range(20) if n != 9}, **{str(n): f"second {n}" for n in range(3)}}


def checked(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def flip_bit(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def zero(path: Path, chance: random.Random) -> None:
    del chance
    path.write_bytes(bytes(path.stat().st_size))


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def remove(path: Path, chance: random.Random) -> None:
    del chance
    path.unlink()


def test_every_random_change_is_found_and_no_document_is_wrong(written: Path, tmp_path: Path) -> None:
    chance = random.Random(17)
    whole, refused = tmp_path / "whole", 0
    shutil.copytree(written, whole)
    paths = checked(written)
    for _ in range(RANDOM_CASES):
        path = chance.choice(paths)
        change = chance.choice([flip_bit, flip_bit, zero, truncate, remove])
        change(path, chance)
        if path.name == "manifest.json" and change is remove:  # as a folder that is new
            path.write_bytes((whole / path.relative_to(written)).read_bytes())
            continue
        try:
            index = EmbeddedIndex(written, COMPONENTS, "test-1")
        except AdapterError as error:
            assert isinstance(error, Unavailable | Damaged)
            assert path.name in error.for_operators
            refused += 1
        else:  # it is a file of the commit before
            assert texts(index) == EXPECTED
            assert path in index.damaged() or not path.exists()
        shutil.copy2(whole / path.relative_to(written), path)
    assert refused > 0.4 * RANDOM_CASES
    assert EmbeddedIndex(written, COMPONENTS, "test-1").damaged() == []


def test_a_record_that_changes_while_the_index_is_open_is_not_returned(written: Path, open_index: Open) -> None:
    index = open_index()
    records = max(written.glob("segments/*/records.bin"))
    content = bytearray(records.read_bytes())
    content[-3] ^= 1
    with records.open("r+b") as file:  # in place: it is mapped
        file.write(content)
    with pytest.raises(Damaged, match="a document is damaged: `trivium rebuild` recovers the others"):
        texts(index)
    assert index.damaged() == [records]


def test_a_file_that_has_changed_is_not_linked_into_a_new_commit(written: Path, open_index: Open) -> None:
    index = open_index()
    part = min(written.glob("graph/*2/*.part"))
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    with pytest.raises(Damaged, match="the index is damaged"):
        index.write_blocking([vector_record("new")])
    assert texts(index) == EXPECTED


def run_rebuild(folder: Path, with_deleted: bool = False) -> tuple[Rebuilt, EmbeddedIndex, Encoder]:
    encoder, done = Encoder(), []
    rebuilt = rebuild(folder, COMPONENTS, "test-1", encoder, with_deleted, done.append)
    assert sum(done) >= rebuilt.documents
    index = EmbeddedIndex(folder, COMPONENTS, "test-1")
    assert index.damaged() == []
    assert len(set(index.documents_by_component().values())) == 1
    return rebuilt, index, encoder


@pytest.mark.parametrize(
    "pattern",
    [
        "manifest.json",
        "segments/*/ids/*",
        "segments/*/docnos.npy",
        "segments/*/columns.msgpack",
        "segments/*/ends.npy",
        "graph/*/*.part",
        "keyword/*/*.term",
        "keyword/*/meta.json",
        "manifests/*",
    ],
)
@pytest.mark.parametrize("change", [flip_bit, zero, truncate])
def test_every_document_is_kept_if_its_record_is_whole(
    written: Path, pattern: str, change: Callable[[Path, random.Random], None]
) -> None:
    for path in written.glob(pattern):
        change(path, random.Random(1))
    if pattern == "manifest.json":
        with pytest.raises(Damaged):
            EmbeddedIndex(written, COMPONENTS, "test-1")
    rebuilt, index, encoder = run_rebuild(written)
    assert (rebuilt.documents, rebuilt.lost, rebuilt.encoded, encoder.texts) == (19, 0, 0, [])
    assert texts(index) == EXPECTED
    assert index.generation() > 2
    assert rebuilt.old.name == "index.replaced-0"
    vectors = {each.record.document.id: each.vectors for each in index.current().sample_with_vectors(100)}
    for n in (0, 5, 19):
        np.testing.assert_array_equal(vectors[str(n)], vector_record(str(n), seed=n).vectors)


def test_damaged_records_are_lost_and_the_others_kept(written: Path) -> None:
    path = min(written.glob("segments/*/records.bin"))
    content = path.read_bytes()
    for id_ in (4, 5):
        content = content.replace(b"first %d" % id_, b"fIrst %d" % id_)
    path.write_bytes(content)
    rebuilt, index, _ = run_rebuild(written)
    assert (rebuilt.documents, rebuilt.lost) == (17, 2)
    assert texts(index) == {id_: text for id_, text in EXPECTED.items() if id_ not in {"4", "5"}}


def test_without_the_ends_the_records_before_the_damage_are_kept(written: Path) -> None:
    folder = min(path.parent for path in written.glob("segments/*/records.bin"))
    (folder / "ends.npy").unlink()
    content = (folder / "records.bin").read_bytes()
    (folder / "records.bin").write_bytes(content.replace(b"first 12", b"fIrst 12"))
    rebuilt, index, _ = run_rebuild(written)
    readable = {str(n): f"first {n}" for n in range(3, 12) if n != 9} | {str(n): f"second {n}" for n in range(3)}
    assert texts(index) == readable
    assert rebuilt.lost == 19 - len(readable)


def test_a_segment_without_records_is_lost(written: Path) -> None:
    min(written.glob("segments/*/records.bin")).unlink()
    rebuilt, index, _ = run_rebuild(written)
    assert (texts(index), rebuilt.lost) == ({str(n): f"second {n}" for n in range(3)}, 16)


def test_damaged_vectors_are_computed_again(written: Path) -> None:
    truncate(min(written.glob("segments/*/vectors.f32")), random.Random(2))
    rebuilt, index, encoder = run_rebuild(written)
    assert (rebuilt.documents, rebuilt.lost, rebuilt.encoded) == (19, 0, 16)
    assert len(encoder.texts) == 16
    assert texts(index) == EXPECTED
    vectors = {each.record.document.id: each.vectors for each in index.current().sample_with_vectors(100)}
    np.testing.assert_array_equal(vectors["2"], vector_record("2", seed=2).vectors)
    assert vectors["5"][0, 0] == 1.0


def test_deleted_documents_come_back_only_by_request(written: Path) -> None:
    zero(max(written.glob("dead/*")), random.Random(3))
    with pytest.raises(Damaged, match="--with-deleted restores the deleted documents, too"):
        run_rebuild(written)
    rebuilt, index, _ = run_rebuild(written, with_deleted=True)
    assert texts(index) == {**EXPECTED, "9": "first 9"}
    assert (rebuilt.documents, rebuilt.lost) == (20, -1)


def test_a_second_rebuild_keeps_the_first_damaged_index_and_continues_its_generations(written: Path) -> None:
    first, index, _ = run_rebuild(written)
    generation = index.generation()
    index.write_blocking([vector_record("new", "new")])
    second, index, _ = run_rebuild(written)
    assert [each.old.name for each in (first, second)] == ["index.replaced-0", "index.replaced-1"]
    assert index.generation() > generation + 1
    assert texts(index) == {**EXPECTED, "new": "new"}


def test_an_index_without_any_manifest_or_of_another_build_is_left_alone(written: Path) -> None:
    with pytest.raises(VersionMismatch, match="was built as 'test-1', the settings require 'test-2'"):
        rebuild(written, COMPONENTS, "test-2", Encoder())
    for path in (written / "manifest.json", *written.glob("manifests/*")):
        path.write_bytes(b"{")
    with pytest.raises(Damaged):
        rebuild(written, COMPONENTS, "test-1", Encoder())
    assert (written / "segments").exists()


def test_an_index_that_is_being_written_is_not_rebuilt(written: Path) -> None:
    with files.exclusive(written / "lock"), pytest.raises(Unavailable, match="another process"):
        rebuild(written, COMPONENTS, "test-1", Encoder())


def test_an_empty_index_is_rebuilt_to_an_empty_one(open_index: Open, tmp_path: Path) -> None:
    open_index()
    rebuilt, index, _ = run_rebuild(tmp_path / "index")
    assert (rebuilt.documents, rebuilt.lost, texts(index)) == (0, 0, {})
    index.write_blocking([VectorRecord(vector_record("a").record, vector_record("a").vectors)])
    assert set(texts(index)) == {"a"}


def test_a_missing_manifest_is_no_empty_index(written: Path, open_index: Open) -> None:
    before = texts(open_index())
    (written / "manifest.json").unlink()
    with pytest.raises(Damaged, match=r"manifest.json of the index is missing: `trivium rebuild`"):
        open_index()
    rebuilt = rebuild(written, COMPONENTS, "test-1", Encoder())
    assert (rebuilt.documents, rebuilt.lost, texts(open_index())) == (len(before), 0, before)


def test_a_crash_in_the_first_write_leaves_an_empty_index(
    open_index: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_index()
    write_json, count = checked_file.write_json, 0

    def crash_before_publishing(path: Path, value: object) -> None:
        nonlocal count
        count += path.name == "manifest.json"
        if count == 2:
            raise OSError("power cut")
        write_json(path, value)

    monkeypatch.setattr(checked_file, "write_json", crash_before_publishing)
    with pytest.raises(Unavailable):
        index.write_blocking([vector_record("1", "first")])
    monkeypatch.undo()
    assert texts(open_index()) == {}
    open_index().write_blocking([vector_record("1", "first")])
    assert texts(open_index()) == {"1": "first"}
