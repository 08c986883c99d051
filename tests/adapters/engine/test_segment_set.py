from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Scope, Viewer
from adapters.engine import SegmentSet
from adapters.engine.segment import Segment, Stored, write
from adapters.model.document import fields, rank_fields
from adapters.model.filter import And, Eq, In, access, matches, normal
from adapters.ports import VectorRecord
from fusion.values import DocumentFields
from tests.conftest import SCOPE, vector_record

_folders = count()

BATCHES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True), min_size=1, max_size=4)
"""Numbers of the documents that each segment contains; a later segment replaces documents of earlier ones."""


def document(number: int, batch: int, scope: Scope = SCOPE) -> VectorRecord:
    return vector_record(
        str(number),
        f"batch {batch}",
        scope=scope,
        tags=(f"even{number % 2 == 0}",),
        parent_id=f"p{number // 3}" if number % 3 else None,
        chunk_index=number if number % 3 else None,
        importance=float(batch) if number % 4 == 0 else None,
        created_at=datetime(2026, 1, 1 + number, tzinfo=UTC) if number % 5 == 0 else None,
    )


def segment_set(folder: Path, batches: list[list[VectorRecord]]) -> SegmentSet:
    """Segments of these records; of records with one key only the last one is alive."""
    numbers = count()
    segments, keys = [], []
    for batch in batches:
        path = folder / f"{next(_folders)}"
        write(path, [Stored(next(numbers), each.record, each.vectors) for each in batch])
        segments.append(Segment(path))
        keys += [each.record.key for each in batch]
    last = {key: position for position, key in enumerate(keys)}
    return SegmentSet(segments, np.array([last[key] != position for position, key in enumerate(keys)], np.bool_))


@given(BATCHES)
def test_a_position_is_that_of_the_newest_living_document(tmp_path: Path, batches: list[list[int]]) -> None:
    written = [[document(n, index) for n in batch] for index, batch in enumerate(batches)]
    segments = segment_set(tmp_path, written)
    newest = {each.record.key: each.record for batch in written for each in batch}
    assert len(segments) == sum(map(len, batches))
    assert segments.count == len(newest)
    for key, record in newest.items():
        position = segments.position(key)
        assert position is not None
        assert segments.live[position]
        assert segments.record(position) == record
        segment, row = segments.locate(position)
        assert segments.find(key) == (segment, row)
        assert segments.ids(np.array([position])) == [record.document.id]
    assert segments.position(("default", "default", "unknown")) is None
    assert segments.find(("other", "default", "0")) is None
    assert segments.positions(segments.docnos).tolist() == list(range(len(segments)))


@given(BATCHES)
def test_the_fields_of_a_position_are_those_of_its_record(tmp_path: Path, batches: list[list[int]]) -> None:
    written = [[document(n, index) for n in batch] for index, batch in enumerate(batches)]
    segments = segment_set(tmp_path, written)
    positions = np.arange(len(segments))[::-1]
    columns = segments.fields(positions)
    expected = [rank_fields(segments.record(int(position)).document) for position in positions]
    actual = [DocumentFields() if columns is None else columns.row(row) for row in range(len(positions))]
    assert actual == [each or DocumentFields() for each in expected]


@given(BATCHES)
def test_a_mask_has_the_living_positions_that_pass(tmp_path: Path, batches: list[list[int]]) -> None:
    segments = segment_set(tmp_path, [[document(n, index) for n in batch] for index, batch in enumerate(batches)])
    everything = normal(access(SCOPE, Viewer("restricted")))
    for condition in (everything, normal(And((everything, Eq("tags", "evenTrue")))), In("id", ())):
        mask = segments.mask(condition)
        records = [segments.record(position) for position in range(len(segments))]
        expected = [
            bool(alive) and matches(condition, fields(record))
            for alive, record in zip(segments.live, records, strict=True)
        ]
        assert mask.flags.tolist() == expected
        assert mask.count == sum(expected)
        assert mask.everything == all(expected)
        assert segments.passing(condition).tolist() == np.flatnonzero(expected).tolist()
        assert segments.mask(condition) is mask, "a mask is computed once"


def test_true_and_one_have_masks_of_their_own(tmp_path: Path) -> None:
    """In Python 1.0 == True, so the filters are equal and must not have one cached mask."""
    records = [vector_record("a", metadata={"m": True}), vector_record("b", metadata={"m": 1})]
    segments = segment_set(tmp_path, [records])
    assert segments.passing(In("metadata.m", (True,))).tolist() == [0]
    assert segments.mask(In("metadata.m", (True,))).flags.tolist() == [True, False]
    assert segments.mask(In("metadata.m", (1.0,))).flags.tolist() == [False, True]


def test_scopes_do_not_share_keys(tmp_path: Path) -> None:
    other = Scope("other")
    segments = segment_set(tmp_path, [[document(0, 0), document(0, 1, other)]])
    assert segments.position(("default", "default", "0")) == 0
    assert segments.position(("other", "default", "0")) == 1


@pytest.mark.parametrize(("sizes", "scattered"), [([10], False), ([10, 1], False), ([10, 2], True), ([5, 5], True)])
def test_a_set_is_scattered_if_a_tenth_is_outside_the_largest_segment(
    tmp_path: Path, sizes: list[int], scattered: bool
) -> None:
    """10 of 11 rows are more than nine tenths, 10 of 12 are not."""
    numbers = count()
    batches = [[vector_record(str(next(numbers))) for _ in range(size)] for size in sizes]
    assert segment_set(tmp_path, batches).is_scattered() is scattered


def test_a_set_without_segments_is_empty() -> None:
    segments = SegmentSet([], np.zeros(0, np.bool_))
    assert (len(segments), segments.count) == (0, 0)
    assert segments.fields(np.zeros(0, np.int64)) is None
    assert segments.mask(normal(access(SCOPE, Viewer("normal")))).count == 0
    assert segments.position(("default", "default", "a")) is None
