from __future__ import annotations

import pytest

from adapters import AdapterError, Rejected, Unavailable
from adapters.graph.extract import extractor


def by_hash(text: str) -> list[str]:
    """An extractor of a user's: the words that begin with a hash."""
    return [word.removeprefix("#") for word in text.split() if word.startswith("#")]


def in_any_order(text: str) -> set[str]:
    return set(text.split())


def a_single_text(text: str) -> str:
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
def test_an_address_chooses_the_extractor(address: str, expected: tuple[str, ...]) -> None:
    assert extractor(address)("of Ada Lovelace #one #two #one") == expected


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("python://no.such.module:f", Unavailable, "cannot be imported: No module named 'no'"),
        (f"{HERE}:missing", Unavailable, "has no attribute 'missing'"),
        (f"{HERE}:a_single_text", Rejected, "returned str, allowed are lists, tuples and sets of texts"),
    ],
)
def test_a_function_that_fails_is_reported(address: str, error: type[AdapterError], message: str) -> None:
    with pytest.raises(error, match=message):
        extractor(address)("text")


@pytest.mark.parametrize("written", ["", "rules", "python://module", "python://:f", "python://a.b:c()", "http://x:y"])
def test_an_invalid_address_is_rejected(written: str) -> None:
    with pytest.raises(ValueError, match="is not an address, it must be one of rules://, none://, python://"):
        extractor(written)
