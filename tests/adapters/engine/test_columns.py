from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapters import Document, Record
from adapters.engine.columns import Columns, ColumnsBuilder
from adapters.model.document import Scalar, fields
from adapters.model.filter import Eq, Filter, matches, normal
from adapters.model.numbers import split
from tests.adapters.filters import NUMBERS, TEXTS, documents, filters

ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(["f", "g"]),
        st.lists(st.one_of(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.booleans()), max_size=4).map(tuple),
    ),
    max_size=12,
)


def columns(rows: list[dict[str, tuple[Scalar, ...]]]) -> Columns:
    builder = ColumnsBuilder()
    for row in rows:
        builder.add(row)
    return Columns.decode(builder.encode())


@given(documents(), filters)
def test_flags_agree_with_the_definition_of_a_filter(corpus: list[Document], condition: Filter) -> None:
    rows = [fields(Record("t", "e", document)) for document in corpus]
    expected = [matches(condition, row) for row in rows]
    assert columns(rows).flags(condition).tolist() == expected
    assert columns(rows).flags(normal(condition)).tolist() == expected


@given(ROWS, st.randoms())
def test_counts_are_the_text_values_of_the_flagged_rows(rows: list[dict[str, tuple[Scalar, ...]]], random) -> None:
    """A value that a row has twice counts twice."""
    flags = np.array([random.random() < 0.5 for _ in rows], np.bool_)
    flagged = [row for row, flag in zip(rows, flags, strict=True) if flag]
    expected = Counter(value for row in flagged for value in row.get("f", ()) if isinstance(value, str))
    assert columns(rows).counts("f", flags) == expected


@given(ROWS)
def test_numbers_and_texts_are_the_values_by_row(rows: list[dict[str, tuple[Scalar, ...]]]) -> None:
    decoded = columns(rows)
    pairs = [(number, value) for number, row in enumerate(rows) for value in row.get("f", ())]
    at, values = decoded.numbers("f")
    assert list(zip(at.tolist(), values.tolist(), strict=True)) == [
        (row, split(value)[0]) for row, value in pairs if not isinstance(value, str | bool)
    ]
    distinct, (at, codes) = decoded.texts("f")
    assert list(distinct) == sorted({value for _, value in pairs if isinstance(value, str)})
    assert [(row, distinct[code]) for row, code in zip(at.tolist(), codes.tolist(), strict=True)] == [
        (row, value) for row, value in pairs if isinstance(value, str)
    ]


def test_no_rows_and_unknown_fields_are_empty() -> None:
    empty = columns([])
    assert empty.flags(Eq("f", "x")).tolist() == []
    one = columns([{"f": ("x",)}])
    assert one.counts("unknown", np.ones(1, np.bool_)) == {}
    assert [len(each) for each in one.numbers("unknown")] == [0, 0]
    assert one.texts("unknown")[0] == ()


def test_columns_need_the_memory_of_their_values_however_many_fields_there_are() -> None:
    """A writer chooses the metadata keys."""
    builder = ColumnsBuilder()
    for row in range(200):
        builder.add({f"metadata.{row}-{number}": ("x",) for number in range(256)})
    content = builder.encode()
    tracemalloc.start()
    decoded = Columns.decode(content)
    for number in range(2_000):
        assert decoded.flags(Eq(f"metadata.7-{number % 256}", "x")).tolist().index(True) == 7
        assert not decoded.flags(Eq(f"metadata.absent {number}", "x")).any()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 1_000_000, f"{used} bytes for 51,200 fields"
    assert len(content) < 51_200 * 100
