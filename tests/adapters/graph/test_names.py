from __future__ import annotations

import math
from time import perf_counter

import pytest

from adapters.graph.link import Linked, link, start
from adapters.graph.names import mentioned, normalize, surname


def everywhere(node: int) -> int:
    """A degree: as many passages mention the name as one could wish."""
    del node
    return 1_000_000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("The Prestige (film)", "the prestige"),
        ("Beyoncé Knowles", "beyonce knowles"),
        ("Alice's Adventures", "alice adventures"),
        ("  O’Neill—Smith,  Jr. ", "o neill smith jr"),
        ("asyncio.to_thread", "asyncio to thread"),
        ("(note)", ""),
        ("?!", ""),
        ("日本 (国)", "日本"),
    ],
)
def test_two_spellings_of_a_name_are_one(name: str, expected: str) -> None:
    assert normalize(name) == expected


def test_no_name_takes_long() -> None:
    began = perf_counter()
    for hostile in ("x" + " " * 200_000, "(" * 200_000 + ")", "A " * 100_000, "a" * 200_000):
        normalize(hostile)
        mentioned(hostile)
    assert perf_counter() - began < 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The film was directed by Christopher Nolan in 2010.", ("Christopher Nolan",)),
        ("He met the President of the United States there.", ("President of the United States",)),
        ("When it rains. Yesterday nothing happened.", ()),
        ("The Ada Lovelace papers.", ("Ada Lovelace",)),
        ("Ada Lovelace and Ada Lovelace again", ("Ada Lovelace and Ada Lovelace",)),
        ("and then RESULTS In all of them", ("RESULTS",)),
        ("nothing here", ()),
        ("", ()),
    ],
)
def test_names_are_runs_of_capitals(text: str, expected: tuple[str, ...]) -> None:
    found = mentioned(text)
    assert found == expected or set(expected) <= set(found)


def test_long_spans_win_over_short_ones_and_nothing_overlaps() -> None:
    nodes = {"new york": 1, "new york city": 2, "city hall": 3, "hall": 4}
    linked = link("New York City Hall", nodes, everywhere, {"hall": 1}, 100)
    assert set(linked.seeds) == {2, 4}


def test_a_seed_weighs_the_cube_of_its_information() -> None:
    frequency = {"rare": 1, "name": 9}
    linked = link("rare name", {"rare name": 7}, everywhere, frequency, 99)
    idf = [math.log1p(99 / df) for df in (1, 9)]
    assert linked.seeds == {7: pytest.approx(sum(idf) ** 3)}
    assert linked.coverage == pytest.approx(1.0)


def test_coverage_is_the_share_of_information_that_is_linked() -> None:
    linked = link("who is rare", {"rare": 7}, everywhere, {"who": 100, "is": 100, "rare": 1}, 100)
    idf = {word: math.log1p(100 / df) for word, df in {"who": 100, "is": 100, "rare": 1}.items()}
    assert linked.coverage == pytest.approx(idf["rare"] / sum(idf.values()))


@pytest.mark.parametrize(("word", "df"), [("ab", 1), ("the", 1), ("common", 3_000)])
def test_single_words_that_say_nothing_are_not_names(word: str, df: int) -> None:
    assert link(word, {word: 1}, everywhere, {word: df}, 10_000).seeds == {}


def test_no_words_link_nothing() -> None:
    assert link("?!", {}, everywhere, {}, 0) == link("", {}, everywhere, {}, 10)


@pytest.mark.parametrize(("degree", "named"), [(1, False), (4, True)])
def test_a_word_that_is_seldom_a_name_is_none(degree: int, named: bool) -> None:
    """Twenty passages hold it; a heading in one of them is no name, four mentions are."""
    linked = link("folate rises", {"folate": 5}, lambda _: degree, {"folate": 20}, 10_000)
    assert bool(linked.seeds) is named


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Knuth, D. E.", "knuth"),
        ("De Millo, R.A.", "de millo"),
        ("O’Neill, P", "o neill"),
        ("Paris, France", ""),
        ("Knuth", ""),
        ("A, B, C", ""),
        (",", ""),
    ],
)
def test_authors_have_surnames(name: str, expected: str) -> None:
    assert surname(name) == expected


def test_a_walk_starts_from_names_and_documents() -> None:
    """Coverage .5: the names get .15 + .7 * .5, by their weights; documents the rest, by 1/place."""
    nodes, mass = start(Linked({7: 3.0, 8: 1.0}, 0.5), [1, 2])
    assert dict(zip(nodes.tolist(), mass.tolist(), strict=True)) == pytest.approx(
        {7: 0.5 * 3 / 4, 8: 0.5 / 4, 1: 0.5 / 1.5, 2: 0.25 / 1.5}
    )


@pytest.mark.parametrize(
    ("linked", "documents", "expected"),
    [
        (Linked({7: 3.0, 8: 1.0}, 0.5), [], {7: 0.75, 8: 0.25}),
        (Linked({}, 0.0), [4], {4: 1.0}),
        (Linked({4: 1.0}, 0.0), [4], {4: 1.0}),
        (Linked({}, 0.0), [], {}),
    ],
)
def test_what_is_not_there_leaves_all_to_the_other(
    linked: Linked, documents: list[int], expected: dict[int, float]
) -> None:
    nodes, mass = start(linked, documents)
    assert dict(zip(nodes.tolist(), mass.tolist(), strict=True)) == pytest.approx(expected)
