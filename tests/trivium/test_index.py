"""The synchronous face: documents in, answers out, errors that say what is wrong."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anyio.from_thread import BlockingPortal

import trivium
from trivium import Document, Index, InvalidDocuments

PRESTIGE = {"id": "1", "title": "The Prestige", "text": "A film by Christopher Nolan.", "tags": ["film"]}
OTTER = Document(id="2", text="An otter swims.", tags=("animal",))


@pytest.fixture
def index(tmp_path: Path, model_dir: Path) -> Iterator[Index]:
    with trivium.open(tmp_path / "data", model_dir=model_dir) as opened:
        yield opened


def test_documents_are_found_with_a_filter_and_an_explanation(index: Index) -> None:
    assert index.add([PRESTIGE, OTTER]) == 2
    film = {"op": "eq", "field": "tags", "value": "film"}
    response = index.search("who directed The Prestige?", filter=film, explain=True)
    assert [hit.id for hit in response.hits] == ["1"]
    assert response.hits[0].sources["keyword"]
    assert response.explain
    assert not response.degraded


def test_documents_are_read_replaced_counted_and_deleted(index: Index) -> None:
    index.add([PRESTIGE, OTTER])
    index.add([{**PRESTIGE, "text": "A novel by Christopher Priest."}])
    assert len(index) == 2
    stored = index.get("1")
    assert stored
    assert stored.text == "A novel by Christopher Priest."
    assert (index.delete("1"), index.delete("1")) == (True, False)
    assert (index.get("1"), len(index)) == (None, 1)


def test_documents_are_listed_and_deleted_by_a_filter(index: Index) -> None:
    index.add([PRESTIGE, OTTER])
    otter = {"op": "eq", "field": "id", "value": "2"}
    assert [document.id for document in index.documents()] == ["1", "2"]
    assert [document.id for document in index.documents(filter=otter)] == ["2"]
    assert (index.delete_many(filter=otter, dry_run=True), index.delete_many(filter=otter), len(index)) == (1, 1, 1)
    for call in (index.documents, index.delete_many):
        for wrong in ({"op": "eq", "field": "idd", "value": "2"}, {"op": "is"}, 5):
            with pytest.raises(ValueError, match=r"allowed|Expected"):
                list(call(filter=wrong))  # type: ignore[call-overload]


def test_what_was_written_is_there_when_the_folder_is_opened_again(tmp_path: Path, model_dir: Path) -> None:
    for expected in (0, 1):
        with trivium.open(str(tmp_path), model_dir=model_dir) as index:
            assert len(index) == expected
            index.add([OTTER])
            index.tidy()


def test_invalid_documents_are_named_and_all_others_are_stored(index: Index) -> None:
    with pytest.raises(
        InvalidDocuments, match=r"^2 documents were not stored, 1 were: document 1: text: missing"
    ) as raised:
        index.add([{"id": "3"}, OTTER, {"id": "4", "text": "a", "colour": "red"}])
    assert list(raised.value.errors) == [1, 3]
    assert "colour" in raised.value.errors[3]
    assert len(index) == 1
    assert index.add([]) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limit": 100}, "limit: 100, allowed are 1 to 50"),
        ({"limt": 1}, "unknown field 'limt'"),
        ({"mode": "fast"}, "allowed are auto, hybrid, vector, graph, keyword"),
        ({"filter": {"op": "like"}}, "allowed are "),
    ],
)
def test_a_search_that_is_not_allowed_says_what_is(index: Index, fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        index.search("otter", **fields)


def test_a_setting_that_is_not_allowed_is_named(tmp_path: Path) -> None:
    with pytest.raises(trivium.SettingsError, match="TRIVIUM_CANDIDATES_PER_SOURCE is 0"):
        trivium.open(tmp_path, candidates_per_source=0)
    with pytest.raises(trivium.SettingsError, match="there is no setting 'vectr'; the nearest is 'vector'"):
        trivium.open(tmp_path, vectr="embedded://")


@pytest.mark.parametrize(("folder", "settings"), [(5, {}), (b"films", {}), ("", {}), ("films", {"data_dir": "other"})])
def test_a_folder_that_is_not_allowed_is_named(folder: object, settings: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=rf"{folder!r}"):
        trivium.open(folder, **settings)  # type: ignore[arg-type]


def test_the_fields_of_objects_are_checked_and_all_other_documents_are_stored(index: Index) -> None:
    """No type checker looks at the fields of a struct when it is made."""
    fields: list[dict[str, Any]] = [
        {"id": 5}, {"text": None}, {"metadata": {"a": object()}}, {"metadata": {"a": {1: 2}}}, {"created_at": "2020"},
        {"importance": -1}, {"sensitivity": "topsecret"}, {"tags": "film"}, {"metadata": {"a": float("nan")}},
        {"text": "\ud800"},
    ]  # fmt: skip
    with pytest.raises(InvalidDocuments) as raised:
        index.add([*(Document(**{"id": "a", "text": "b", **each}) for each in fields), OTTER])
    assert list(raised.value.errors) == list(range(1, len(fields) + 1))
    assert "sensitivity: 'topsecret'" in raised.value.errors[7]
    assert (len(index), index.get("2")) == (1, OTTER)


@pytest.mark.parametrize("documents", [PRESTIGE, OTTER, "hello", b"hello", None, 42])
def test_what_is_no_list_of_documents_is_refused(index: Index, documents: Any) -> None:
    with pytest.raises(TypeError, match="allowed is a list of documents"):
        index.add(documents)


@pytest.mark.parametrize("id_", [1, None, b"1"])
def test_an_id_is_a_text(index: Index, id_: Any) -> None:
    for call in (index.get, index.delete):
        with pytest.raises(TypeError, match=r"id is .*, allowed is a text"):
            call(id_)


def test_an_error_of_the_iterable_is_raised_after_the_documents_before_it_are_stored(index: Index) -> None:
    def documents() -> Iterator[object]:
        yield OTTER
        yield {"id": 5}
        raise LookupError("boom")

    with pytest.raises(LookupError, match="boom") as raised:
        index.add(documents())  # type: ignore[arg-type]
    assert raised.value.__notes__[0].startswith("1 documents were not stored, 1 were: document 2")
    assert index.get("2") == OTTER


def test_documents_of_every_sensitivity_are_found_and_deleted(index: Index) -> None:
    index.add([{"id": "secret", "text": "zebra", "sensitivity": "restricted"}])
    assert [hit.id for hit in index.search("zebra").hits] == ["secret"]
    assert index.delete("secret")


def test_threads_may_share_an_index(index: Index) -> None:
    index.add([PRESTIGE, OTTER])
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda number: index.search(f"otter {number}", limit=1).hits[0].id, range(40))
    assert set(found) == {"2"}


def test_a_closed_index_may_be_closed_again(tmp_path: Path, model_dir: Path) -> None:
    index = trivium.open(tmp_path, model_dir=model_dir)
    index.close()
    index.close()
    for call in (lambda: index.search("otter"), index.__enter__, lambda: len(index)):
        with pytest.raises(RuntimeError, match=f"the index in {tmp_path} is closed"):
            call()


def test_a_running_call_ends_before_the_index_is_closed(tmp_path: Path, model_dir: Path) -> None:
    reached, proceed = threading.Event(), threading.Event()

    def documents() -> Iterator[Document]:
        reached.set()
        proceed.wait(20)
        yield OTTER

    index = trivium.open(tmp_path, model_dir=model_dir)
    with ThreadPoolExecutor(2) as pool:
        added = pool.submit(index.add, documents())
        assert reached.wait(20)
        closed = pool.submit(index.close)
        proceed.set()
        assert added.result(20) == 1
        closed.result(20)


@pytest.mark.parametrize(("end", "code"), [("", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1)])
def test_a_program_that_does_not_close_the_index_ends(
    tmp_path: Path, model_dir: Path, python: str, end: str, code: int
) -> None:
    program = f"""
import trivium
index = trivium.open({str(tmp_path)!r}, model_dir={str(model_dir)!r})
index.add([{{"id": "1", "text": "x"}}])
{end}
"""
    done = subprocess.run([python, "-c", program], timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (code, code == 1)


def test_a_forked_process_is_told_to_open_the_index_itself(index: Index) -> None:
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            index.search("otter")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as message:
        assert message.read().decode().endswith(f"was opened in process {os.getpid()}: open it in this one")
    os.waitpid(child, 0)


def test_an_interrupt_that_comes_while_a_call_starts_stops_it(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    start = BlockingPortal.start_task_soon
    running = threading.Event()
    stopped = threading.Event()

    def interrupted(self: BlockingPortal, *arguments: Any) -> None:
        start(self, *arguments)
        assert running.wait(10)
        raise KeyboardInterrupt

    def documents() -> Iterator[dict[str, str]]:
        try:
            for number in itertools.count():
                running.set()
                yield {"id": str(number), "text": "x"}
        finally:
            stopped.set()

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(BlockingPortal, "start_task_soon", interrupted)
        index.add(documents())
    assert stopped.wait(10)


@pytest.mark.process
@pytest.mark.parametrize(
    "interrupt",
    [
        "os.kill(os.getpid(), signal.SIGINT)",
        # Received by the thread that reads the documents, while the main thread waits.
        "signal.pthread_kill(threading.get_ident(), signal.SIGINT)",
    ],
)
def test_an_interrupt_stops_adding(tmp_path: Path, model_dir: Path, python: str, interrupt: str) -> None:
    program = f"""
import itertools, os, signal, threading, trivium
signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background ignores interrupts
def documents():
    for number in itertools.count():
        if number == 5:
            {interrupt}
        yield {{"id": str(number), "text": "x"}}
with trivium.open({str(tmp_path)!r}, model_dir={str(model_dir)!r}) as index:
    index.add(documents())
"""
    done = subprocess.run([python, "-c", program], timeout=60, check=False, capture_output=True, text=True)
    assert "KeyboardInterrupt" in done.stderr


def test_vectors_may_be_arrays_and_are_kept(tmp_path: Path, model_dir: Path) -> None:
    arrays = [np.array([1, 0, 0]), np.array([0.25, 0.5, 1], np.float32), list(np.array([0, 0, 2], np.float32))]
    with trivium.open(tmp_path / "data", model_dir=model_dir, embedder="none://3") as index:
        assert index.add([{"id": str(n), "text": "x", "vector": each} for n, each in enumerate(arrays)]) == 3
        assert index.search("x", mode="vector", vector=arrays[1]).hits[0].id == "1"
        assert [each.vector for each in index.documents()] == [(1, 0, 0), (0.25, 0.5, 1), (0, 0, 2)]
        with pytest.raises(InvalidDocuments, match="vector: 2 numbers, allowed are 3 numbers"):
            index.add([{"id": "a", "text": "x", "vector": np.ones(2)}])
