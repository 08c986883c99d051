from __future__ import annotations

import math
import re
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.graph import names
from adapters.graph.entity_linking import LinkedEntities, link_entities, walk_seeds
from adapters.graph.names import mentioned, normalize, surname


def large_degree(node: int) -> int:
    """A degree above every limit."""
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
def test_spellings_of_a_name_have_one_normal_form(name: str, expected: str) -> None:
    assert normalize(name) == expected


def test_no_text_takes_long() -> None:
    began = thread_time()  # processor time: a loaded machine changes nothing
    for hostile in ("x" + " " * 200_000, "(" * 200_000 + ")", "A " * 100_000, "a" * 200_000):
        normalize(hostile)
        mentioned(hostile)
    assert thread_time() - began < 2


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
def test_names_are_runs_of_capitalised_words(text: str, expected: tuple[str, ...]) -> None:
    found = mentioned(text)
    assert found == expected or set(expected) <= set(found)


def test_long_spans_win_over_short_ones_and_nothing_overlaps() -> None:
    nodes = {"new york": 1, "new york city": 2, "city hall": 3, "hall": 4}
    entities = link_entities("New York City Hall", nodes, large_degree, {"hall": 1}, 100)
    assert set(entities.seeds) == {2, 4}


def test_a_seed_weighs_the_cube_of_its_information() -> None:
    frequency = {"rare": 1, "name": 9}
    entities = link_entities("rare name", {"rare name": 7}, large_degree, frequency, 99)
    idf = [math.log1p(99 / df) for df in (1, 9)]
    assert entities.seeds == {7: pytest.approx(sum(idf) ** 3)}
    assert entities.entity_coverage == pytest.approx(1.0)


def test_coverage_is_the_fraction_of_information_in_linked_words() -> None:
    entities = link_entities("who is rare", {"rare": 7}, large_degree, {"who": 100, "is": 100, "rare": 1}, 100)
    idf = {word: math.log1p(100 / df) for word, df in {"who": 100, "is": 100, "rare": 1}.items()}
    assert entities.entity_coverage == pytest.approx(idf["rare"] / sum(idf.values()))


def test_a_name_whose_rarest_word_is_more_often_used_without_meaning_it_counts_less() -> None:
    """4 of 16 passages with the rarer word mention the name: a share of a quarter, its square root a half."""
    frequency = {"reporting": 16, "duty": 64, "who": 50}
    query, nodes = "who reporting duty", {"reporting duty": 7}
    sure = link_entities(query, nodes, lambda _: 16, frequency, 100)
    doubtful = link_entities(query, nodes, lambda _: 4, frequency, 100)
    assert doubtful.seeds[7] == pytest.approx(sure.seeds[7] * 0.5)
    assert doubtful.entity_coverage == pytest.approx(sure.entity_coverage * 0.5**0.5)
    assert sure == link_entities(query, nodes, large_degree, frequency, 100)


@pytest.mark.parametrize(("word", "df"), [("ab", 1), ("the", 1), ("common", 3_000)])
def test_short_common_and_stop_words_are_not_names(word: str, df: int) -> None:
    assert link_entities(word, {word: 1}, large_degree, {word: df}, 10_000).seeds == {}


def test_a_query_without_words_links_nothing() -> None:
    assert link_entities("?!", {}, large_degree, {}, 0) == link_entities("", {}, large_degree, {}, 10)


@pytest.mark.parametrize(("degree", "is_name"), [(1, False), (4, True)])
def test_a_word_that_is_rarely_mentioned_as_a_name_is_not_a_name(degree: int, is_name: bool) -> None:
    """Twenty passages contain it: one mention (a heading) is not enough, four are."""
    entities = link_entities("folate rises", {"folate": 5}, lambda _: degree, {"folate": 20}, 10_000)
    assert bool(entities.seeds) is is_name


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
def test_surnames_of_authors(name: str, expected: str) -> None:
    assert surname(name) == expected


def test_walk_seeds_are_names_and_documents() -> None:
    """Coverage .5: the names get .15 + .7 * .5 = .5, by weight; the documents get the rest, by 1/rank."""
    nodes, mass = walk_seeds(LinkedEntities({7: 3.0, 8: 1.0}, 0.5), [1, 2])
    assert dict(zip(nodes.tolist(), mass.tolist(), strict=True)) == pytest.approx(
        {7: 0.5 * 3 / 4, 8: 0.5 / 4, 1: 0.5 / 1.5, 2: 0.25 / 1.5}
    )


@pytest.mark.parametrize(
    ("entities", "documents", "expected"),
    [
        (LinkedEntities({7: 3.0, 8: 1.0}, 0.5), [], {7: 0.75, 8: 0.25}),
        (LinkedEntities({}, 0.0), [4], {4: 1.0}),
        (LinkedEntities({4: 1.0}, 0.0), [4], {4: 1.0}),
        (LinkedEntities({}, 0.0), [], {}),
    ],
)
def test_names_or_documents_alone_get_all_of_the_mass(
    entities: LinkedEntities, documents: list[int], expected: dict[int, float]
) -> None:
    nodes, mass = walk_seeds(entities, documents)
    assert dict(zip(nodes.tolist(), mass.tolist(), strict=True)) == pytest.approx(expected)


PARTS = [
    "Äpfel's",
    "E\u0301cole",
    "\u0301",
    "a-b",
    "don't",
    "x",
    "\n",
    "’s",
    "\t ",
    " ",
    "_",
    "\uff07s",
    "'",
    "\u2026",
    "\u00b4",
    "㏒",
    "日本",
]


@given(st.lists(st.sampled_from(PARTS), max_size=40))
def test_the_words_of_a_long_text_are_those_of_its_slices(parts: list[str]) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        expected = names.words(text)
        patch.setattr(names, "_SLICE_CHARS", 5)
        assert names.words(text) == expected


@pytest.mark.parametrize("part", ["A-", "a_", "é\u2026", "word ", "Smith's, ", '"', ". ", "\u202e"])
def test_slices_are_short_whatever_separates_the_words(part: str) -> None:
    """A regular expression that reads one blocks all other threads, the event loop among them."""
    text = part * 100_000
    slices = list(names._slices(text))
    assert "".join(slices) == text
    assert max(map(len, slices)) <= names._SLICE_CHARS + len(part)


@pytest.mark.parametrize("part", ["x", "é", "\u0301", "\u00bd\u2122"])
def test_slices_are_short_where_nothing_separates_words(part: str) -> None:
    slices = list(names._slices(part * 100_000))
    assert "".join(slices) == part * 100_000
    assert max(map(len, slices)) <= names._SLICE_CHARS + names._MAX_WORD_CHARS


class RecordingPattern:
    """A regular expression, and how many characters each of its searches may read."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.chars: list[int] = []

    def search(self, text: str, start: int, end: int) -> re.Match[str] | None:
        self.chars.append(min(end, len(text)) - start)
        return self._pattern.search(text, start, end)

    def match(self, text: str, start: int, end: int) -> re.Match[str] | None:
        self.chars.append(min(end, len(text)) - start)
        return self._pattern.match(text, start, end)


@given(st.lists(st.sampled_from([*PARTS, "The Film", " of ", "\n"]), max_size=40), st.sampled_from([1, 5, 4_096]))
def test_names_do_not_depend_on_how_a_text_is_searched(parts: list[str], slice_chars: int) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "_SLICE_CHARS", slice_chars)
        assert [run.group() for run in names._runs(text)] == names._PHRASE.findall(text)


@pytest.mark.parametrize("text", ["x" * 100_000, "A" + " " * 100_000, "A" * 100_000, "Ab " * 30_000])
def test_names_are_searched_in_short_steps(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regular expression blocks all other threads, the event loop among them."""
    patterns = {name: RecordingPattern(getattr(names, name)) for name in ("_CAPITAL", "_PHRASE")}
    for name, pattern in patterns.items():
        monkeypatch.setattr(names, name, pattern)
    mentioned(text)
    chars = [each for pattern in patterns.values() for each in pattern.chars]
    assert len(chars) > 20
    assert max(chars) <= 4_096


def test_long_words_do_not_stay_in_memory() -> None:
    before = names._is_stopword.cache_info().currsize
    texts = [f"it names {'A' * 1_000}{number}" for number in range(10)]
    assert all(len(mentioned(text)) == 1 for text in texts)
    assert names._is_stopword.cache_info().currsize == before


def test_a_long_run_of_capitalised_words_is_no_name() -> None:
    """It is a table or a list, and reading all of it in one step would stop the other threads."""
    assert all(len(name.split()) <= names.MAX_WORDS for name in names.mentioned("Alpha " * 100_000))
