from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given

from adapters import Document, Record, Scope, Viewer
from adapters.model.document import fields
from adapters.model.filter import (
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
    matches,
    metadata_keys,
    normal,
)
from adapters.model.filter_hash import filter_key
from adapters.model.filter_limits import check
from tests.adapters.filters import documents, filters


def record(document: Document) -> Record:
    return Record("t", "e", document)


@given(documents(), filters)
def test_the_normal_form_means_the_same(corpus: list[Document], condition: Filter) -> None:
    for document in corpus:
        values = fields(record(document))
        assert matches(normal(condition), values) == matches(condition, values)


@given(documents(), filters)
def test_a_filter_needs_only_the_metadata_that_it_names(corpus: list[Document], condition: Filter) -> None:
    keys = metadata_keys(condition)
    for document in corpus:
        needed = fields(record(document), keys)
        assert matches(condition, needed) == matches(condition, fields(record(document)))
        assert {each for each in needed if each.startswith("metadata.")} <= {f"metadata.{key}" for key in keys}


@given(filters)
def test_the_normal_form_of_a_normal_form_is_itself(condition: Filter) -> None:
    assert normal(normal(condition)) == normal(condition)


@given(filters)
def test_a_filter_survives_json(condition: Filter) -> None:
    assert msgspec.json.decode(msgspec.json.encode(condition), type=Filter) == condition


@given(filters, filters)
def test_filters_have_the_same_key_only_if_they_are_the_same(one: Filter, other: Filter) -> None:
    same = msgspec.json.encode(one) == msgspec.json.encode(other)
    assert (filter_key(one) == filter_key(other)) is same
    copied = msgspec.json.decode(msgspec.json.encode(one), type=Filter)
    assert filter_key(copied) == filter_key(one)


def test_values_that_python_takes_for_equal_have_different_keys() -> None:
    conditions: list[Filter] = [Eq("metadata.a", 1.0), Eq("metadata.a", True), Eq("metadata.a", "1.0")]
    assert len({filter_key(each) for each in conditions}) == 3
    assert len({filter_key(And((each, EVERYTHING))) for each in conditions}) == 3


def test_a_conjunction_of_conditions_that_are_too_large_to_cache_is_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(8):
            values = tuple(f"{number} {each} {'x' * 700}" for each in range(4_096))  # 3 MB as JSON
            filter_key(And((In("metadata.key", values), Eq("collection", str(number)))))
            del values
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 8 << 20  # all of them are more than 24 MiB


def test_order_and_repetition_do_not_change_the_normal_form() -> None:
    a, b = Eq("language", "en"), Exists("tags")
    assert normal(And((a, And((b, a))))) == normal(And((b, a)))
    assert normal(Or((Or((a,)), b))) == normal(Or((b, a, a)))
    assert normal(Not(Not(a))) == normal(a)


def test_conditions_that_are_always_or_never_true_are_folded_away() -> None:
    a = Eq("language", "en")
    assert normal(And((a, NOTHING))) == NOTHING
    assert normal(Or((a, EVERYTHING))) == EVERYTHING
    assert normal(And((normal(a), EVERYTHING))) == normal(a)
    assert normal(In("language", ())) == NOTHING
    assert normal(Not(EVERYTHING)) == NOTHING


def test_the_strictest_bounds_remain() -> None:
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
    condition = normal(In("metadata.m", (True, 1, "1", 1.0)))
    assert isinstance(condition, In)
    assert [(type(value), value) for value in condition.values] == [(bool, True), (float, 1.0), (str, "1")]


@pytest.mark.parametrize(("clearance", "visible"), [("public", 1), ("normal", 2), ("sensitive", 3), ("restricted", 4)])
def test_a_caller_sees_documents_of_its_scope_up_to_its_clearance(clearance: str, visible: int) -> None:
    allowed = access(Scope("t", "e"), Viewer(clearance))  # type: ignore[arg-type]
    levels = ("public", "normal", "sensitive", "restricted")
    corpus = [Document(id=level, text="x", sensitivity=level) for level in levels]  # type: ignore[arg-type]
    assert sum(matches(allowed, fields(Record("t", "e", document))) for document in corpus) == visible
    assert not any(matches(allowed, fields(Record("other", "e", document))) for document in corpus)
    assert not any(matches(allowed, fields(Record("t", "other", document))) for document in corpus)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (Eq("tenant", "other"), "unknown field 'tenant', allowed are id, collection"),
        (Eq("metadata.", "x"), "unknown field 'metadata.'"),
        (Range("importance"), "the range of 'importance' has no bound"),
        (In("id", tuple(str(n) for n in range(4_097))), "4097 values for 'id', allowed are 4096"),
        (Or(tuple(Exists("id") for _ in range(256))), "more than the 256 conditions allowed"),
        (Or(tuple(Range("importance", gt=n) for n in range(64))), "more than the 256 conditions allowed"),
        (Not(Eq("tenant", "x")), "unknown field 'tenant'"),
    ],
)
def test_an_invalid_filter_is_rejected_with_the_reason(condition: Filter, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(condition)


def test_nesting_is_limited() -> None:
    condition: Filter = Exists("id")
    for _ in range(16):
        condition = Not(condition)
    with pytest.raises(ValueError, match="nested deeper than the 16 levels allowed"):
        check(condition)
