"""The file of feedback: bounded, fair between tenants, shared by processes."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters import Viewer
from adapters.model.document import Scope
from adapters.model.errors import Unavailable
from adapters.model.feedback import Feedback, ShownResponse
from adapters.storage.feedback_store import FeedbackStore

OWN, OTHER = Scope("own", "live"), Scope("other", "live")
MAX_BYTES = 300_000


def response(number: int, scope: Scope = OWN, hits: int = 5) -> ShownResponse:
    ids = tuple(("notes", f"document {each}", f"document {each}") for each in range(hits))
    return ShownResponse(
        f"{scope.tenant}-{number}", scope, Viewer("normal"), float(number), f"hash {number}", "a query", 1, ids
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedbackStore]:
    opened = FeedbackStore(tmp_path / "folder" / "feedback.sqlite", MAX_BYTES)
    yield opened
    opened.close()


def numbers(store: FeedbackStore, scope: Scope = OWN) -> list[int]:
    return [int(each.at) for each, _ in store.read(scope)]


def size(tmp_path: Path) -> int:
    """Of the file, without its log."""
    return (tmp_path / "folder" / "feedback.sqlite").stat().st_size


def test_the_oldest_responses_make_room(store: FeedbackStore, tmp_path: Path) -> None:
    for number in range(0, 6_000, 100):
        store.add([response(each) for each in range(number, number + 100)])
    left = numbers(store)
    assert left == list(range(left[0], 6_000))
    assert 300 < len(left) < 6_000
    store.delete(OTHER, 0.0)  # writes the log back
    assert size(tmp_path) <= MAX_BYTES + 100_000  # and what is written at once


@pytest.mark.parametrize(
    ("scope", "hits"),
    [(Scope("a" * 500, "b" * 500), 0), (OWN, 0), (OWN, 50), (OWN, 12)],
    ids=["long names", "no hits", "rows of several pages", "rows of a page"],
)
def test_the_limit_is_that_of_the_file(store: FeedbackStore, tmp_path: Path, scope: Scope, hits: int) -> None:
    for number in range(0, 4_000, 100):
        store.add([response(each, scope, hits) for each in range(number, number + 100)])
    store.delete(OTHER, 0.0)
    assert MAX_BYTES / 2 < size(tmp_path) <= MAX_BYTES + 300_000  # and what is written at once


def test_a_large_tenant_displaces_no_small_one(store: FeedbackStore) -> None:
    store.add([response(number, OTHER) for number in range(3)])
    for number in range(100, 6_000, 100):
        store.add([response(each) for each in range(number, number + 100)])
    assert numbers(store, OTHER) == [0, 1, 2]
    assert numbers(store)[-1] == 5_999


def test_feedback_counts_as_well(store: FeedbackStore) -> None:
    store.add([response(number, hits=50) for number in range(120)])
    before = numbers(store)
    for number in before[-100:]:
        for hit in range(50):
            store.record(Feedback(f"own-{number}", hit, "used", hit + 1, 1.0))
    assert 0 < len(numbers(store)) < len(before)


def test_what_is_deleted_takes_its_feedback_with_it(store: FeedbackStore, tmp_path: Path) -> None:
    store.add([response(1), response(2, OTHER)])
    assert store.record(Feedback("own-1", 0, "used", 1, 1.0))
    assert store.record(Feedback("other-2", 0, "used", 1, 1.0))
    assert store.delete(OWN, 5.0) == (1, 1)
    assert not store.record(Feedback("own-1", 0, "used", 1, 1.0))
    assert [(each.query_id, len(of_it)) for each, of_it in store.read(OTHER)] == [("other-2", 1)]
    assert store.find(OWN, "other-2") is None
    with sqlite3.connect(tmp_path / "folder" / "feedback.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM feedback").fetchone() == (1,)


def test_the_same_feedback_again_replaces_it(store: FeedbackStore) -> None:
    store.add([response(1), response(1)])
    for position in (1, 9):
        assert store.record(Feedback("own-1", 2, "used", position, float(position)))
    assert [of_it for _, of_it in store.read(OWN)] == [[Feedback("own-1", 2, "used", 9, 9.0)]]


def write_many(path: Path, first: int) -> None:
    store = FeedbackStore(path, 10_000_000)
    for number in range(first, first + 100):
        store.add([response(number)])
        store.record(Feedback(f"own-{number}", 0, "used", 1, 1.0))
    store.close()


def test_several_processes_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "feedback.sqlite"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write_many, args=(path, first)) for first in (0, 100, 200)]
    for each in processes:
        each.start()
    for each in processes:
        each.join(60)
        assert each.exitcode == 0
    store = FeedbackStore(path, 10_000_000)
    assert sorted(numbers(store)) == list(range(300))
    assert all(len(of_it) == 1 for _, of_it in store.read(OWN))
    store.close()


def test_a_file_that_is_no_database_is_an_error_of_the_adapter(tmp_path: Path) -> None:
    path = tmp_path / "feedback.sqlite"
    path.write_bytes(b"not a database" * 1_000)
    store = FeedbackStore(path, MAX_BYTES)
    for call in (lambda: store.add([response(1)]), lambda: store.delete(OWN, 5.0), lambda: list(store.read(OWN))):
        with pytest.raises(Unavailable, match="feedback cannot be") as error:
            call()
        assert "not a database" in error.value.detail
    store.close()


def test_a_failed_write_changes_nothing(store: FeedbackStore) -> None:
    store.add([response(1)])
    broken = response(2)
    object.__setattr__(broken, "first", object())
    with pytest.raises(Unavailable):
        store.add([response(3), broken])
    assert numbers(store) == [1]
    store.add([response(4)])
    assert numbers(store) == [1, 4]


def test_what_is_written_after_a_deletion_but_older_stays_deleted(store: FeedbackStore) -> None:
    """Another process has it in its queue."""
    store.add([response(1)])
    assert store.delete(OWN, 5.0) == (1, 0)
    store.add([response(4), response(6), response(4, OTHER)])
    assert numbers(store) == [6]
    assert numbers(store, OTHER) == [4]


def test_a_deletion_says_that_a_reader_still_keeps_what_is_deleted(store: FeedbackStore, tmp_path: Path) -> None:
    store.add([response(1), response(2)])
    reading = store.read(OWN)
    next(reading)
    with pytest.raises(Unavailable, match="the log of a reader still has it"):
        store.delete(OWN, 5.0)
    reading.close()  # type: ignore[attr-defined]
    assert store.delete(OWN, 6.0) == (0, 0)
    for path in (tmp_path / "folder").iterdir():
        assert b"a query" not in path.read_bytes()


def test_the_later_of_two_opposite_votes_counts(store: FeedbackStore) -> None:
    store.add([response(1)])
    for kind in ("used", "useful", "not_useful"):
        assert store.record(Feedback("own-1", 0, kind, 1, 1.0))
    assert [each.kind for _, of_it in store.read(OWN) for each in of_it] == ["not_useful", "used"]


def test_a_file_that_was_deleted_is_made_again(store: FeedbackStore, tmp_path: Path) -> None:
    store.add([response(1)])
    for path in (tmp_path / "folder").iterdir():
        path.unlink()
    store.add([response(2)])
    assert numbers(store) == [2]


def test_a_file_of_the_version_before_is_converted(store: FeedbackStore, tmp_path: Path) -> None:
    store.add([response(1)])
    store.close()
    with sqlite3.connect(tmp_path / "folder" / "feedback.sqlite") as connection:
        connection.executescript(
            "DROP VIEW named; ALTER TABLE responses DROP COLUMN viewer; ALTER TABLE responses DROP COLUMN profiles;"
            "ALTER TABLE responses ADD COLUMN clearance TEXT NOT NULL DEFAULT 'sensitive'; PRAGMA user_version = 1;"
            "CREATE VIEW named AS SELECT response, query_id, clearance, at, query_hash, query, first, hits, tenant,"
            "environment FROM responses JOIN scopes USING (scope);"
        )
    store.add([response(2)])
    assert numbers(store) == [1, 2]
    converted = store.find(response(1).scope, response(1).query_id)
    assert converted == replace(response(1), viewer=Viewer("sensitive"))


def test_a_file_of_another_release_is_refused(store: FeedbackStore, tmp_path: Path) -> None:
    store.add([response(1)])
    store.close()
    with sqlite3.connect(tmp_path / "folder" / "feedback.sqlite") as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(Unavailable) as error:
        store.add([response(2)])
    assert "version 7" in error.value.detail


def test_names_that_cannot_be_encoded_are_an_error_of_the_adapter(store: FeedbackStore) -> None:
    store.add([response(1)])
    with pytest.raises(Unavailable):
        list(store.read(Scope("\udcff", "live")))
