"""What a file says of itself."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Document
from orchestrator.indexing.folder.fields import fields_of
from orchestrator.indexing.ndjson import checked

DAY = datetime(2024, 3, 1, tzinfo=UTC)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["title", "date", "tags", "lang", "aliases", "related", "author", "", "path"]) | st.text()


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        (["a", " b ", "a"], ("a", "b")),
        ("a, b; c", ("a", "b", "c")),
        ("#a", ("a",)),
        (2024, ("2024",)),
        (None, ()),
        ([None, {"x": 1}, True], ()),
    ],
)
def test_tags_are_a_list_or_a_text(given: Any, tags: tuple[str, ...]) -> None:
    assert fields_of({"Tags": given}).tags == tags


@pytest.mark.parametrize(
    "given",
    [date(2024, 3, 1), datetime(2024, 3, 1, tzinfo=UTC), "2024-03-01", "2024-03-01T00:00:00Z", "2024-03-01 00:00:00",
     "D:20240301", "D:20240301093000+01'00'", "2024/03/01", ["2024-03-01"], "2024-03-01 01:00 +0100",
     "2024-03-01T00:00"],
)  # fmt: skip
def test_dates_are_those_of_yaml_rfc_3339_and_pdf(given: Any) -> None:
    assert fields_of({"date": given}).created_at == DAY


@pytest.mark.parametrize("given", ["yesterday", 5, [], "D:xx", "0000-00-00", "1 March 2024", {"x": "2024-03-01"}])
def test_what_is_no_date_is_left_out(given: Any) -> None:
    assert fields_of({"date": given}).created_at is None


def test_other_keys_become_metadata() -> None:
    given = {"author": "Ada", "draft": True, "weight": 3, "when": date(2024, 3, 1), "deep": {"x": 1}, "path": "no"}
    assert dict(fields_of(given).others) == {"author": "Ada", "draft": True, "weight": 3, "when": "2024-03-01"}


def test_names_keep_their_commas_in_lists_and_titles() -> None:
    found = fields_of({"title": "Salt, pepper", "aliases": ["a, b"], "related": "x.md, y.md"})
    assert (found.title, found.aliases, found.related) == ("Salt, pepper", ("a, b",), ("x.md", "y.md"))


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_whatever_a_file_says_is_a_document(given: dict[str, Any]) -> None:
    found = fields_of(given)
    checked(
        Document(
            id="a",
            text="x",
            title=found.title,
            created_at=found.created_at,
            tags=found.tags,
            language=found.language,
            entities=found.aliases,
            metadata=dict(found.others),
        )
    )
