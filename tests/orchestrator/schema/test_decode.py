"""Errors of JSON input name the field and what is allowed, in one line."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapters import Document
from adapters.model.dates import ALLOWED
from orchestrator.schema.decode import InvalidInput, decoded, describe_decode_error
from orchestrator.schema.search import SearchRequest
from orchestrator.schema.search_input import decode_search_request

SEARCH: dict[str, Any] = {"query": "x"}
DOCUMENT: dict[str, Any] = {"id": "a", "text": "b"}
ALLOWED_BY_FIELD = {
    "cache": ["use", "refresh", "bypass"],
    "collapse": ["parent", "window", "url", "none"],
    "boosts": ["centrality", "importance", "recency", "relationship"],
    "op": ["eq", "in", "range", "exists", "and", "or", "not"],
    "sensitivity": ["public", "normal", "sensitive", "restricted"],
}
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20))
FIELDS = st.sampled_from([*SearchRequest.__struct_fields__, *Document.__struct_fields__, "op", "field", "unknown"])
JSON = st.recursive(
    VALUES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=4))
)


def description(content: bytes, kind: type) -> str | None:
    """The description of the decoding error; ``None`` if decoding succeeds."""
    try:
        msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return describe_decode_error(error, kind, decoded(content))
    return None


def in_field(field: str, value: str) -> tuple[type, dict[str, Any]]:
    """A request or a document with a value where the field has it."""
    match field:
        case "sensitivity":
            return Document, {**DOCUMENT, field: value}
        case "boosts":
            return SearchRequest, {**SEARCH, field: {value: True}}
        case "op":
            return SearchRequest, {**SEARCH, "filter": {"op": "not", "filter": {"op": value}}}
        case _:
            return SearchRequest, {**SEARCH, field: value}


@given(st.sampled_from(sorted(ALLOWED_BY_FIELD)), st.text(max_size=30))
def test_an_unknown_value_is_reported_with_its_field_and_all_allowed_values(field: str, value: str) -> None:
    assume(value not in ALLOWED_BY_FIELD[field])
    kind, body = in_field(field, value)
    described = description(json.dumps(body).encode(), kind)
    assert described is not None
    at, _, allowed = described.rpartition(", allowed are ")
    assert f"{field}: " in at
    names, _, nearest = allowed.partition("; the nearest is ")
    assert sorted(names.split(", ")) == sorted(ALLOWED_BY_FIELD[field])
    assert nearest in {"", *ALLOWED_BY_FIELD[field]}


@pytest.mark.parametrize("field", [field for field in ALLOWED_BY_FIELD if field != "op"])
def test_every_value_that_is_reported_as_allowed_is_accepted(field: str) -> None:
    for value in ALLOWED_BY_FIELD[field]:
        kind, body = in_field(field, value)
        assert description(json.dumps(body).encode(), kind) is None


@given(st.one_of(st.binary(max_size=60), JSON.map(lambda value: json.dumps(value).encode())))
def test_every_error_of_any_input_is_one_printable_line(content: bytes) -> None:
    for kind in (SearchRequest, Document):
        described = description(content, kind)
        assert described is None or (described.isprintable() and 0 < len(described) < 1_000)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_an_unknown_field_is_reported_in_one_printable_line_with_all_fields(name: str) -> None:
    assume(name not in SearchRequest.__struct_fields__)
    described = description(json.dumps({**SEARCH, name: 1}).encode(), SearchRequest)
    assert described is not None
    assert described.startswith("unknown field ")
    assert described.isprintable()
    assert f", allowed are {', '.join(SearchRequest.__struct_fields__)}" in described
    assert "2026" not in described.removeprefix(f"unknown field {name!r}")


@pytest.mark.parametrize("name", ["RFC3339", "allowed", "a\nb", "\x1b[31m", "`$.op`"])
def test_a_field_name_that_looks_like_a_part_of_a_message_changes_nothing(name: str) -> None:
    described = description(json.dumps({**SEARCH, name: 1}).encode(), SearchRequest)
    assert described is not None
    at, _, _ = described.partition(", allowed are ")
    assert at == f"unknown field {name!r}"


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b'{"id":"a\xff"}', Document, "not UTF-8: unexpected byte 0xff"),
        (
            b'{"id":"a","text":"b","created_at":"yesterday"}',
            Document,
            f"created_at: 'yesterday', allowed are {ALLOWED}",
        ),
        (b'{"query":"x","timeout_ms":0}', SearchRequest, "timeout_ms: 0, allowed are 1 to 60000"),
        (
            b'{"query":"x","timeout_ms":"ten"}',
            SearchRequest,
            "timeout_ms: 'ten', allowed are whole numbers from 1 to 60000",
        ),
        (
            b'{"query":"x","filter":{"op":"not","filter":{"op":"eq","feild":"id"}}}',
            SearchRequest,
            "filter.filter: unknown field 'feild', allowed are op, field, value; the nearest is field",
        ),
        (b'{"query":"x"', SearchRequest, "not JSON: it is empty or incomplete"),
        (
            b'{"query":"x","boosts":{"newness":true}}',
            SearchRequest,
            "boosts: unknown key 'newness', allowed are centrality, importance, recency, relationship",
        ),
    ],
)
def test_descriptions(content: bytes, kind: type, expected: str) -> None:
    assert description(content, kind) == expected


def test_a_long_value_is_shortened_and_its_field_and_the_allowed_values_are_not() -> None:
    described = description(json.dumps({**SEARCH, "cache": "z" * 1_000_000}).encode(), SearchRequest)
    assert described is not None
    assert len(described) < 500
    assert described.startswith("cache: 'zzz")
    assert described.endswith("zzz'…, allowed are bypass, refresh, use")


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [("10.0", "limit", 10), ("1e1", "limit", 10), ("772056.0", "text_chars", 772056), ("2.0", "neighbors", 2)],
)
def test_a_whole_number_may_have_a_fraction_of_zero(fields: str, name: str, value: int) -> None:
    request = decode_search_request(f'{{"query": "x", "{name}": {fields}}}'.encode())
    assert (getattr(request, name), type(getattr(request, name))) == (value, int)


@pytest.mark.parametrize(("number", "message"), [("10.5", "limit: 10.5"), ("1e300", "limit: ")])
def test_a_number_that_is_not_whole_is_refused(number: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        decode_search_request(f'{{"query": "x", "limit": {number}}}'.encode())
