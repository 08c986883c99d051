from __future__ import annotations

import pytest

from adapters import AdapterError, Rejected, Unavailable
from adapters.graph.extract import extractor


def by_hash(text: str) -> list[str]:
    """An extractor of a user's: what stands behind a hash."""
    return [word.removeprefix("#") for word in text.split() if word.startswith("#")]


def in_any_order(text: str) -> set[str]:
    return set(text.split())


def nothing_that_is_allowed(text: str) -> str:
    return text


HERE = "python://tests.adapters.graph.test_extract"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("rules://", ("Ada Lovelace",)),
        ("none://", ()),
        (f"{HERE}:by_hash", ("one", "two")),
        (f"{HERE}:in_any_order", ("#one", "#two", "Ada", "Lovelace", "of")),
    ],
)
def test_who_finds_names_is_chosen_by_an_address(address: str, expected: tuple[str, ...]) -> None:
    assert extractor(address)("of Ada Lovelace #one #two #one") == expected


@pytest.mark.parametrize(
    ("address", "error", "complaint"),
    [
        ("python://no.such.module:f", Unavailable, "cannot be imported: No module named 'no'"),
        (f"{HERE}:missing", Unavailable, "has no attribute 'missing'"),
        (f"{HERE}:nothing_that_is_allowed", Rejected, "gave str, allowed are lists, tuples and sets of texts"),
    ],
)
def test_what_does_not_work_is_told(address: str, error: type[AdapterError], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        extractor(address)("text")


@pytest.mark.parametrize("written", ["", "rules", "python://module", "python://:f", "python://a.b:c()", "http://x:y"])
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is none of rules://, none://, python://"):
        extractor(written)
