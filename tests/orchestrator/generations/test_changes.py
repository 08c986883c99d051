"""The record of changes: nothing that was recorded is lost, whatever a crash leaves at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.model.errors import Damaged, Unavailable
from orchestrator.indexing.generations.changes import ChangeRecord

KEYS = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5)), max_size=4)


def test_the_keys_of_each_write_are_read_in_order(tmp_path: Path) -> None:
    record = ChangeRecord(tmp_path)
    assert (record.end(), list(record.read(0, 0))) == (0, [])
    record.append([("t", "e", "b"), ("t", "e", "a"), ("t", "e", "a")])
    middle = record.end()
    record.append([("t", "e", "c\n\u2028")])
    assert list(record.read(0, record.end())) == [[("t", "e", "a"), ("t", "e", "b")], [("t", "e", "c\n\u2028")]]
    assert list(record.read(middle, record.end())) == [[("t", "e", "c\n\u2028")]]
    assert list(record.read(0, middle)) == [[("t", "e", "a"), ("t", "e", "b")]]
    record.clear()
    assert record.end() == 0


@given(before=KEYS, torn=KEYS, after=KEYS, cut=st.integers(min_value=1, max_value=200))
def test_a_line_that_a_crash_left_incomplete_is_removed(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, str, str]],
    torn: list[tuple[str, str, str]],
    after: list[tuple[str, str, str]],
    cut: int,
) -> None:
    folder = tmp_path_factory.mktemp("changes")
    record = ChangeRecord(folder)
    record.append(before)
    complete = record.end()
    record.append(torn)
    path = folder / "changes"
    content = path.read_bytes()
    path.write_bytes(content[: max(complete, len(content) - cut)])
    assert record.end() == complete
    record.append(after)
    assert list(record.read(0, record.end())) == [sorted(set(before)), sorted(set(after))]


def test_a_long_incomplete_line_is_removed(tmp_path: Path) -> None:
    record = ChangeRecord(tmp_path)
    record.append([("t", "e", "a")])
    end = record.end()
    with (tmp_path / "changes").open("ab") as file:
        file.write(b"x" * 200_000)
    assert record.end() == end


def test_a_line_that_the_disk_changed_is_an_error(tmp_path: Path) -> None:
    record = ChangeRecord(tmp_path)
    record.append([("t", "e", "a")])
    path = tmp_path / "changes"
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))
    with pytest.raises(Damaged, match="record of changes"):
        list(record.read(0, record.end()))


def test_what_cannot_be_recorded_is_not_written(tmp_path: Path) -> None:
    record = ChangeRecord(tmp_path / "missing")
    with pytest.raises(Unavailable, match="changes cannot be recorded"):
        record.append([("t", "e", "a")])
