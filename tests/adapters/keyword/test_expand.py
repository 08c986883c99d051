from __future__ import annotations

from pathlib import Path

import pytest

from adapters import AdapterError, Rejected, Unavailable
from adapters.keyword.expand import MAX_EXPANSIONS, Synonyms, expander

pytestmark = pytest.mark.anyio
FILE = """
# how our users talk
car, automobile, motor vehicle
# and not the other way round
tv => television, telly
machine learning => ml
"""


@pytest.fixture
def synonyms(tmp_path: Path) -> Synonyms:
    (tmp_path / "synonyms.txt").write_text(FILE)
    made = expander(f"synonyms://{tmp_path / 'synonyms.txt'}")
    assert isinstance(made, Synonyms)
    return made


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
async def test_what_a_query_says_is_called_otherwise(synonyms: Synonyms, query: str, expected: tuple[str, ...]) -> None:
    assert await synonyms.expand(query) == expected


async def test_the_longest_name_wins() -> None:
    made = Synonyms([("new york", ["big apple"]), ("york", ["eboracum"]), ("new", ["novel"])])
    assert await made.expand("new york and york") == ("big apple", "eboracum")


async def test_there_is_a_bound() -> None:
    assert len(await Synonyms([("a word", map(str, range(99)))]).expand("a word")) == MAX_EXPANSIONS


@pytest.mark.parametrize("line", ["alone", "=> b", "a =>", ", ,", "a => b => c"])
def test_a_line_that_is_neither_form_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.txt").write_text(f"a, b\n{line}\n")
    with pytest.raises(Unavailable, match=r"line 2: .* is neither `a, b` nor `a => b`"):
        expander(f"synonyms://{tmp_path / 's.txt'}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
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


async def test_a_function_of_the_user_s_is_given_what_is_not_quoted() -> None:
    made = expander(f"{HERE}:doubled")
    assert made
    assert await made.expand('a "quoted text" word') == ("a word", "a word again")
    assert await made.expand('"quoted text"') == ()
    coroutine = expander(f"{HERE}:later")
    assert coroutine
    assert await coroutine.expand("x") == ("later",)


@pytest.mark.parametrize(
    ("name", "complaint"), [("failing", "failing failed: no"), ("one_text", "gave str, allowed are")]
)
async def test_a_function_that_does_not_work_is_told(name: str, complaint: str) -> None:
    made = expander(f"{HERE}:{name}")
    assert made
    with pytest.raises(Rejected, match=complaint):
        await made.expand("x")


@pytest.mark.parametrize(
    ("address", "error"), [("python://no.such:f", Unavailable), ("words://", ValueError), ("", ValueError)]
)
def test_what_is_no_address_is_refused(address: str, error: type[AdapterError]) -> None:
    with pytest.raises(error):
        expander(address)


def test_none_is_none() -> None:
    assert expander("none://") is None
