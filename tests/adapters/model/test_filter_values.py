"""The values of a filter: dates as moments, exact numbers, trimmed texts, and a clear error for a wrong kind."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Document, Record
from adapters.model.dates import moment
from adapters.model.document import fields
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range, matches, normal
from adapters.model.filter_values import typed
from adapters.model.numbers import sortable
from tests.adapters.filters import NUMBERS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SAME_MOMENT = ("2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", " 2026-01-31T12:00:00Z ", NOON.timestamp())


def passes(condition: Filter, **document: Any) -> bool:
    record = Record("t", "e", Document(id="1", text="x", **document))
    return matches(normal(typed(condition)), fields(record))


@pytest.mark.parametrize("value", SAME_MOMENT)
def test_dates_are_compared_as_moments(value: Any) -> None:
    assert passes(Eq("created_at", value), created_at=NOON)
    assert passes(In("created_at", ("2020-01-01", value)), created_at=NOON)
    assert not passes(Not(Eq("created_at", value)), created_at=NOON)
    assert not passes(Eq("created_at", value), created_at=datetime(2026, 1, 31, tzinfo=UTC))


def test_a_plain_date_is_the_beginning_of_its_day() -> None:
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    assert passes(Eq("created_at", "2026-01-31"), created_at=midnight)
    assert passes(Range("created_at", gte=moment("2026-01-31"), lt=moment("2026-02-01")), created_at=NOON)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            Eq("created_at", "yesterday"),
            "created_at: 'yesterday' is no date, write 2026-01-31T12:00:00Z, 2026-01-31 or",
        ),
        (Eq("created_at", "2026-01-31T12:00:00"), "is without a time zone"),
        (Eq("created_at", True), "'True' is no date"),
        (In("created_at", (1e300,)), "'1e+300' is no date"),
        (Range("created_at", gte=datetime(2026, 1, 1)), "is without a time zone"),
        (Eq("importance", "high"), "'high' for 'importance', which has numbers"),
        (Eq("importance", True), "'True' for 'importance', which has numbers"),
        (Eq("chunk_index", "3"), "'3' for 'chunk_index', which has numbers"),
        (Range("importance", gt=NOON), "for 'importance', which has numbers"),
        (Eq("tags", 3), "3 for 'tags', which has texts"),
        (In("id", ("a", 1)), "1 for 'id', which has texts"),
        (Range("tags", gt=3), "a range of 'tags', which has texts"),
        (Range("metadata.year", gt=NOON), "for 'metadata.year', which has numbers"),
        (Eq("sensitivity", "publc"), "allowed are public, normal, sensitive, restricted; the nearest is public"),
        (Or((Exists("id"), Not(And((Eq("language", 1),))))), "1 for 'language', which has texts"),
    ],
)
def test_a_value_of_a_kind_that_the_field_cannot_have_is_an_error(condition: Filter, message: str) -> None:
    with pytest.raises(ValueError, match="filter: ") as raised:
        typed(condition)
    assert message in str(raised.value)


@pytest.mark.parametrize("near", [2**53, 2**53 + 2, 2**63 - 2, -(2**53), float(2**53)])
def test_whole_numbers_do_not_match_their_neighbours(near: float) -> None:
    for number in (2**53 + 1, 2**63 - 1, -(2**53) - 1):
        metadata = {"n": number}
        assert passes(Eq("metadata.n", number), metadata=metadata)
        assert not passes(Eq("metadata.n", near), metadata=metadata)
        assert passes(Not(In("metadata.n", (near,))), metadata=metadata)
        assert passes(Range("metadata.n", gt=near), metadata=metadata) == (number > near)
        assert passes(Range("metadata.n", lte=near), metadata=metadata) == (number <= near)


@pytest.mark.parametrize("beyond", [2**63, -(2**63) - 1, 10**30, 10**400, -(10**400)])
def test_a_whole_number_beyond_64_bits_is_compared_as_a_double(beyond: int) -> None:
    metadata = {"n": 2**63 - 1}
    assert not passes(Eq("metadata.n", beyond), metadata=metadata)
    assert passes(Range("metadata.n", lt=beyond), metadata=metadata) == (beyond > 0)
    assert passes(Eq("metadata.n", 10**30), metadata={"n": 1e30})


def test_equal_numbers_are_equal_and_truth_values_are_none() -> None:
    assert passes(Eq("metadata.n", 1), metadata={"n": 1.0})
    assert passes(Eq("metadata.n", 2.0**60), metadata={"n": 2**60})
    assert not passes(Eq("metadata.n", True), metadata={"n": 1})
    assert not passes(Eq("metadata.n", 1), metadata={"n": True})


@given(st.sampled_from(NUMBERS) | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False), st.data())
def test_the_order_of_the_written_numbers_is_that_of_the_numbers(one: float, data: st.DataObject) -> None:
    near = st.integers(int(one) - 3, int(one) + 3) if abs(one) < 2**62 else st.nothing()
    other = data.draw(near | st.sampled_from(NUMBERS) | st.floats(allow_nan=False))
    assert (sortable(one) < sortable(other)) == (one < other)
    assert (sortable(one) == sortable(other)) == (one == other)


def test_texts_are_trimmed_where_those_of_documents_are() -> None:
    assert passes(Eq("tags", " a "), tags=("a",))
    assert passes(Eq("metadata.m", " a"), metadata={"m": ["a"]})
    assert passes(Eq("metadata.m", "a"), metadata={"m": " a "})
    assert not passes(Eq("language", " en "), language="en")


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_keys_and_values_in_any_normal_form_are_equal(form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    def written(text: str) -> str:
        return unicodedata.normalize(form, text)

    document: dict[str, Any] = {"tags": ("Café", "ＡＢ"), "metadata": {"Größe": "ﬁn", "g": ["naïve", 1]}}  # noqa: RUF001
    assert passes(Eq("tags", written("Café")), **document)
    assert passes(Eq("tags", "AB"), **document)
    assert passes(Eq(written("metadata.Größe"), written("ﬁn")), **document)
    assert passes(In("metadata.g", (written("naïve"),)), **document)
    assert passes(Exists(written("metadata.Größe")), **document)
    assert not passes(Eq("tags", "cafe"), **document)


def test_ids_are_compared_as_they_are() -> None:
    assert passes(Eq("section", "é"), section="e\u0301")
    assert not passes(Eq("parent_id", "é"), parent_id="e\u0301")


def test_keys_that_are_equal_in_normal_form_have_the_values_of_both() -> None:
    document = Document(id="a", text="", metadata={"é": 1, "e\u0301": 2})
    assert fields(Record("t", "e", document))["metadata.é"] == (1, 2)
