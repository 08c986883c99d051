"""The synchronous face: documents in, answers out, errors that say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

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


def test_what_was_written_is_there_when_the_folder_is_opened_again(tmp_path: Path, model_dir: Path) -> None:
    for expected in (0, 1):
        with trivium.open(str(tmp_path), model_dir=model_dir) as index:
            assert len(index) == expected
            index.add([OTTER])
            index.tidy()


def test_invalid_documents_are_named_and_all_others_are_stored(index: Index) -> None:
    with pytest.raises(InvalidDocuments, match=r"^2 documents were not stored, 1 were: document 1: .*`text`") as raised:
        index.add([{"id": "3"}, OTTER, {"id": "4", "text": "a", "colour": "red"}])
    assert list(raised.value.errors) == [1, 3]
    assert "colour" in raised.value.errors[3]
    assert len(index) == 1
    assert index.add([]) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limit": 100}, "limit: 100, allowed are 1 to 50"),
        ({"limt": 1}, "unknown field `limt`"),
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


def test_threads_may_share_an_index(index: Index) -> None:
    index.add([PRESTIGE, OTTER])
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda number: index.search(f"otter {number}", limit=1).hits[0].id, range(40))
    assert set(found) == {"2"}


def test_a_closed_index_may_be_closed_again(tmp_path: Path, model_dir: Path) -> None:
    index = trivium.open(tmp_path, model_dir=model_dir)
    index.close()
    index.close()
    with pytest.raises(RuntimeError):
        index.search("otter")
