from __future__ import annotations

from pathlib import Path

import pytest

from adapters import AdapterError, Rejected, Unavailable
from adapters.keyword.expand import MAX_EXPANSIONS, Synonyms, expander

pytestmark = pytest.mark.anyio
FILE = """
# the vocabulary of our users
car, automobile, motor vehicle
# in this direction only
tv => television, telly
machine learning => ml
"""


@pytest.fixture
def synonyms(tmp_path: Path) -> Synonyms:
    (tmp_path / "synonyms.txt").write_text(FILE)
    parsed = expander(f"synonyms://{tmp_path / 'synonyms.txt'}")
    assert isinstance(parsed, Synonyms)
    return parsed


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a red car", ("automobile", "motor vehicle")),
        ("Automobiles!", ("car", "motor vehicle")),
        ("two motor vehicles", ("car", "automobile")),
        ("a motor", ()),
        ("TV or cars", ("television", "telly", "automobile", "motor vehicle")),
        ("television", ()),
        ("machine learning", ("ml",)),
        ("learning machine", ()),
        ('a "red car"', ()),
        ('"tv" in a car', ("automobile", "motor vehicle")),
        ("a car, an automobile", ("motor vehicle",)),
        ("", ()),
    ],
)
async def test_a_query_is_expanded_by_its_synonyms(synonyms: Synonyms, query: str, expected: tuple[str, ...]) -> None:
    assert await synonyms.expand(query) == expected


async def test_the_longest_matching_phrase_wins() -> None:
    synonyms = Synonyms([("new york", ["big apple"]), ("york", ["eboracum"]), ("new", ["novel"])])
    assert await synonyms.expand("new york and york") == ("big apple", "eboracum")


async def test_the_number_of_expansions_is_limited() -> None:
    assert len(await Synonyms([("a word", map(str, range(99)))]).expand("a word")) == MAX_EXPANSIONS


@pytest.mark.parametrize("line", ["single", "=> b", "a =>", ", ,", "a => b => c"])
def test_a_line_of_neither_form_is_reported(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.txt").write_text(f"a, b\n{line}\n")
    with pytest.raises(Unavailable, match=r"line 2: .* is neither `a, b` nor `a => b`"):
        expander(f"synonyms://{tmp_path / 's.txt'}")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"nowhere\.txt cannot be read"):
        expander(f"synonyms://{tmp_path / 'nowhere.txt'}")


def doubled(text: str) -> list[str]:
    return [text, f" {text} again "]


async def later(text: str) -> list[str]:
    return ["later"]


def failing(text: str) -> list[str]:
    raise ZeroDivisionError("no")


def one_text(text: str) -> str:
    return text


HERE = "python://tests.adapters.keyword.test_expand"


async def test_a_function_of_the_user_s_gets_the_text_without_quotations() -> None:
    function = expander(f"{HERE}:doubled")
    assert function
    assert await function.expand('a "quoted text" word') == ("a word", "a word again")
    assert await function.expand('"quoted text"') == ()
    coroutine = expander(f"{HERE}:later")
    assert coroutine
    assert await coroutine.expand("x") == ("later",)


@pytest.mark.parametrize(
    ("name", "message"), [("failing", "failing failed"), ("one_text", "returned str, allowed are")]
)
async def test_a_function_that_fails_is_reported(name: str, message: str) -> None:
    function = expander(f"{HERE}:{name}")
    assert function
    with pytest.raises(Rejected, match=message):
        await function.expand("x")


@pytest.mark.parametrize(
    ("address", "error"), [("python://no.such:f", Unavailable), ("words://", ValueError), ("", ValueError)]
)
def test_an_invalid_address_is_rejected(address: str, error: type[AdapterError]) -> None:
    with pytest.raises(error):
        expander(address)


def test_the_address_none_has_no_expander() -> None:
    assert expander("none://") is None
