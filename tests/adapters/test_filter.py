from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given

from adapters import Document, Record, Scope
from adapters.document import fields
from adapters.embedded.columns import Columns, ColumnsBuilder
from adapters.filter import (
    EVERYTHING,
    NOTHING,
    And,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Range,
    access,
    check,
    matches,
    normal,
)
from tests.adapters.filters import documents, filters


def record(document: Document) -> Record:
    return Record("t", "e", document)


@given(documents(), filters)
def test_the_normal_form_means_the_same(held: list[Document], wanted: Filter) -> None:
    for document in held:
        values = fields(record(document))
        assert matches(normal(wanted), values) == matches(wanted, values)


@given(filters)
def test_the_normal_form_of_a_normal_form_is_itself(wanted: Filter) -> None:
    assert normal(normal(wanted)) == normal(wanted)


@given(documents(), filters)
def test_columns_find_what_the_filter_means(held: list[Document], wanted: Filter) -> None:
    builder = ColumnsBuilder()
    for document in held:
        builder.add(fields(record(document)))
    columns = Columns.decode(builder.encode())
    expected = [matches(wanted, fields(record(document))) for document in held]
    assert columns.flags(wanted).tolist() == expected
    assert columns.flags(normal(wanted)).tolist() == expected


@given(filters)
def test_a_filter_survives_json(wanted: Filter) -> None:
    assert msgspec.json.decode(msgspec.json.encode(wanted), type=Filter) == wanted


def test_order_and_repetition_make_no_other_filter() -> None:
    a, b = Eq("language", "en"), Exists("tags")
    assert normal(And((a, And((b, a))))) == normal(And((b, a)))
    assert normal(Or((Or((a,)), b))) == normal(Or((b, a, a)))
    assert normal(Not(Not(a))) == normal(a)


def test_what_is_always_or_never_true_folds_away() -> None:
    a = Eq("language", "en")
    assert normal(And((a, NOTHING))) == NOTHING
    assert normal(Or((a, EVERYTHING))) == EVERYTHING
    assert normal(And((normal(a), EVERYTHING))) == normal(a)
    assert normal(In("language", ())) == NOTHING
    assert normal(Not(EVERYTHING)) == NOTHING


def test_the_strictest_bounds_are_kept() -> None:
    assert normal(Range("importance", gt=1, gte=2, lt=9, lte=8)) == Range("importance", gte=2.0, lte=8.0)
    assert normal(Range("importance", gt=2, gte=2, lt=8, lte=8)) == Range("importance", gt=2.0, lt=8.0)


def test_dates_are_compared_in_seconds() -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert normal(Range("created_at", gte=moment)) == Range("created_at", gte=1_769_860_800.0)
    values = fields(record(Document(id="a", text="x", created_at=moment)))
    assert matches(Range("created_at", gte=moment), values)
    assert not matches(Range("created_at", gt=moment), values)


def test_texts_numbers_and_booleans_never_equal_each_other() -> None:
    values = fields(record(Document(id="a", text="x", metadata={"m": ["1", True]})))
    assert matches(Eq("metadata.m", "1"), values)
    assert matches(Eq("metadata.m", True), values)
    assert not matches(Eq("metadata.m", 1), values)
    wanted = normal(In("metadata.m", (True, 1, "1", 1.0)))
    assert isinstance(wanted, In)
    assert [(type(value), value) for value in wanted.values] == [(bool, True), (float, 1.0), (str, "1")]


@pytest.mark.parametrize(("clearance", "seen"), [("public", 1), ("normal", 2), ("sensitive", 3), ("restricted", 4)])
def test_a_caller_sees_what_is_at_or_under_its_clearance_in_its_scope(clearance: str, seen: int) -> None:
    allowed = access(Scope("t", "e"), clearance)  # type: ignore[arg-type]
    levels = ("public", "normal", "sensitive", "restricted")
    held = [Document(id=level, text="x", sensitivity=level) for level in levels]  # type: ignore[arg-type]
    assert sum(matches(allowed, fields(Record("t", "e", document))) for document in held) == seen
    assert not any(matches(allowed, fields(Record("other", "e", document))) for document in held)
    assert not any(matches(allowed, fields(Record("t", "other", document))) for document in held)


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Eq("tenant", "other"), "unknown field 'tenant', allowed are id, collection"),
        (Eq("metadata.", "x"), "unknown field 'metadata.'"),
        (Range("importance"), "the range of 'importance' has no bound"),
        (Range("importance", gt=datetime(2026, 1, 1, tzinfo=UTC)), "only created_at takes dates"),
        (Range("created_at", gte=datetime(2026, 1, 1)), "is without a time zone"),
        (In("id", tuple(str(n) for n in range(4_097))), "4097 values for 'id', allowed are 4096"),
        (Or(tuple(Exists("id") for _ in range(256))), "more than the 256 conditions allowed"),
        (Not(Eq("tenant", "x")), "unknown field 'tenant'"),
    ],
)
def test_what_a_user_may_not_ask_is_told(wanted: Filter, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        check(wanted)


def test_nesting_has_an_end() -> None:
    wanted: Filter = Exists("id")
    for _ in range(16):
        wanted = Not(wanted)
    with pytest.raises(ValueError, match="nested deeper than the 16 levels allowed"):
        check(wanted)
