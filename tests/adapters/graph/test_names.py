from __future__ import annotations

# ruff: noqa: RUF001  # letters of other scripts that look like Latin ones
import math
from collections.abc import Callable, Mapping
from time import thread_time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from adapters.graph import names
from adapters.graph.entity_linking import LinkedEntities, Mentions, WordCounts, link_entities, walk_seeds
from adapters.graph.names import mentioned, normalize, surname
from adapters.text import segmentation


def always(node: int) -> Mentions:
    """Mentioned by more passages than there are."""
    del node
    return Mentions(1_000_000)


def in_passages(
    frequency: Mapping[str, int], capitalised: Mapping[str, int] | None = None
) -> Callable[[str], WordCounts]:
    """Words that are in as many passages; with a capital only in all of them, unless it is said."""
    capitals = frequency if capitalised is None else capitalised
    return lambda word: WordCounts(frequency.get(word, 0), capitals.get(word, 0))


def mentioned_by(count: int, is_listed: bool = False) -> Callable[[int], Mentions]:
    return lambda _: Mentions(count, is_listed)


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
        ("日本 (国)", "日 本"),
        ("C++", "c++"),
        (".NET", ".net"),
        ("Straße", "strasse"),
        ("(Mercury)", ""),
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
    entities = link_entities("New York City Hall", nodes, always, in_passages({"hall": 1}), 100)
    assert set(entities.seeds) == {2, 4}


def test_a_seed_weighs_the_cube_of_its_information() -> None:
    frequency = {"rare": 1, "name": 9}
    entities = link_entities("rare name", {"rare name": 7}, always, in_passages(frequency), 99)
    idf = [math.log1p(99 / df) for df in (1, 9)]
    assert entities.seeds == {7: pytest.approx(sum(idf) ** 3)}
    assert entities.entity_coverage == pytest.approx(1.0)


def test_coverage_is_the_fraction_of_information_in_linked_words() -> None:
    entities = link_entities("who is rare", {"rare": 7}, always, in_passages({"who": 100, "is": 100, "rare": 1}), 100)
    idf = {word: math.log1p(100 / df) for word, df in {"who": 100, "is": 100, "rare": 1}.items()}
    assert entities.entity_coverage == pytest.approx(idf["rare"] / sum(idf.values()))


def test_a_name_whose_rarest_word_is_more_often_used_without_meaning_it_counts_less() -> None:
    """4 of 16 passages with the rarer word mention the name: a share of a quarter, its square root a half."""
    frequency = {"reporting": 16, "duty": 64, "who": 50}
    query, nodes = "who reporting duty", {"reporting duty": 7}
    sure = link_entities(query, nodes, mentioned_by(16), in_passages(frequency), 100)
    doubtful = link_entities(query, nodes, mentioned_by(4), in_passages(frequency), 100)
    assert doubtful.seeds[7] == pytest.approx(sure.seeds[7] * 0.5)
    assert doubtful.entity_coverage == pytest.approx(sure.entity_coverage * 0.5**0.5)
    assert sure == link_entities(query, nodes, always, in_passages(frequency), 100)


@pytest.mark.parametrize(("word", "df"), [("ab", 1), ("the", 1), ("common", 3_000)])
def test_short_common_and_stop_words_are_not_names(word: str, df: int) -> None:
    assert link_entities(word, {word: 1}, always, in_passages({word: df}), 10_000).seeds == {}


def test_a_query_without_words_links_nothing() -> None:
    assert link_entities("?!", {}, always, in_passages({}), 0) == link_entities("", {}, always, in_passages({}), 10)


@pytest.mark.parametrize(
    ("query", "mentions", "is_name"),
    [
        ("amazon river", 11, False),
        ("amazon river", 12, True),
        ("the Amazon river", 3, False),
        ("the Amazon river", 4, True),
        ("Amazon river", 11, False),  # at the start every word has a capital
        ("Amazon River", 11, False),  # as in a title
        ("Amazon", 4, True),
        ("AMAZON river", 4, True),
        ("rivers of amazon", 12, True),
    ],
)
def test_a_word_is_a_name_as_far_as_the_corpus_uses_it_as_one(query: str, mentions: int, is_name: bool) -> None:
    """Twenty passages contain it. It is a name if 60 % of them mention it as one, capitalised if 20 % do."""
    entities = link_entities(
        query, {"amazon": 5}, mentioned_by(mentions), in_passages({"amazon": 20, "river": 9}), 10_000
    )
    assert bool(entities.seeds) is is_name


@pytest.mark.parametrize("query", ["can I get my money back", "posting a letter", "what to put there"])
def test_an_ordinary_word_in_lower_case_is_no_name_in_a_corpus_that_has_it_only_as_one(query: str) -> None:
    nodes = {"get": 1, "posting": 2, "put": 3, "money": 4}
    frequency = dict.fromkeys(nodes, 1)
    assert not link_entities(query, nodes, mentioned_by(1), in_passages(frequency), 1_000).seeds.keys() & {1, 2, 3}
    assert link_entities("send a GET to it", nodes, mentioned_by(1), in_passages(frequency), 1_000).seeds.keys() == {1}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        *(("EU policy", "eu"), ("ai safety", "ai"), ("songs of x", "x"), ("3m glue", "3m"), ("c++ templates", "c++")),
        *(("kafka streams", "kafka"), ("apple pie", "apple"), ("what is IT", "it")),
    ],
)
def test_what_an_author_lists_is_known_whatever_its_length_and_frequency(query: str, name: str) -> None:
    frequency = dict.fromkeys(names.words(query), 90)
    assert link_entities(
        query, {name: 7}, mentioned_by(50, is_listed=True), in_passages(frequency), 100
    ).seeds.keys() == {7}
    assert link_entities(query, {name: 7}, mentioned_by(50), in_passages(frequency), 100).seeds == {}


@pytest.mark.parametrize(
    ("mentions", "in_lower_case", "is_listed", "is_name"),
    [
        (18, 2, False, True),
        (18, 3, False, False),
        (18, 3, True, False),
        (40, 3, True, False),
        (20, 20, True, True),  # always written so
        (5, 2, True, True),
        (5, 2, False, False),
    ],
)
def test_a_word_that_the_corpus_has_in_lower_case_is_no_name(
    mentions: int, in_lower_case: int, is_listed: bool, is_name: bool
) -> None:
    """Of 20 passages with the word more than 2 have it as a word."""
    counts = in_passages({"amazon": 20, "parrot": 2}, {"amazon": 20 - in_lower_case})
    found = mentioned_by(mentions, is_listed)
    assert bool(link_entities("amazon parrot", {"amazon": 7}, found, counts, 10_000).seeds) is is_name
    assert link_entities("the Amazon parrot", {"amazon": 7}, found, counts, 10_000).seeds


def test_an_ordinary_word_in_lower_case_is_no_name_even_if_an_author_lists_it() -> None:
    found = mentioned_by(9, is_listed=True)
    assert link_entities("get a refund", {"get": 7}, found, in_passages({"get": 9}), 100).seeds == {}
    assert link_entities("the GET method", {"get": 7}, found, in_passages({"get": 9}), 100).seeds.keys() == {7}


def test_a_word_with_signs_is_a_name_in_lower_case_too() -> None:
    counts = in_passages({"c++": 20}, {"c++": 5})
    assert link_entities("templates in c++", {"c++": 7}, mentioned_by(9, is_listed=True), counts, 100).seeds


def test_words_by_case() -> None:
    found, in_lower_case = names.words_by_case("Apple pie, and the pie of Apple. apple-tree Pear")
    assert found == ["apple", "pie", "and", "the", "pie", "of", "apple", "apple", "tree", "pear"]
    assert in_lower_case == {"pie", "and", "the", "of", "apple", "tree"}


def test_a_stop_word_in_lower_case_is_no_name() -> None:
    assert (
        link_entities("what is it", {"it": 7}, mentioned_by(9, is_listed=True), in_passages({"it": 9}), 100).seeds == {}
    )


def test_one_word_counts_by_its_share_and_its_square() -> None:
    frequency = {"rare": 10, "words": 10}
    sure = link_entities("rare words", {"rare": 7}, mentioned_by(10), in_passages(frequency), 1_000)
    doubtful = link_entities("rare words", {"rare": 7}, mentioned_by(8), in_passages(frequency), 1_000)
    assert doubtful.seeds[7] == pytest.approx(sure.seeds[7] * 0.8)
    assert doubtful.entity_coverage == pytest.approx(sure.entity_coverage * 0.8**2)


@pytest.mark.parametrize(
    "text",
    [
        "Hlavní město České republiky je Praha a leží na řece Vltavě.",
        "Stolicą Polski jest Warszawa nad Wisłą.",
        "Magyarország fővárosa Budapest, a Duna két partján.",
        "Türkiye'nin başkenti Ankara'dır ve İstanbul en büyük şehirdir.",
        "Столица России Москва стоит на Москве-реке.",
        "Η πρωτεύουσα της Ελλάδας είναι η Αθήνα.",
        "北京是中国的首都，位于华北。",
        "عاصمة مصر هي القاهرة",
        "Die Hauptstadt von Deutschland ist Berlin und der Fluss heißt Spree.",
        "Karel jede do Brna za Petrem a Marii.",
        "To jest dom Adama i Ewy w Gdansku.",
        "Tegnap Jánossal Budapesten találkoztunk.",
        "Ali ve Veli Ankara'da otel arar.",
        "Suomen hallitus kokoontui Turussa ja Oulussa.",
        "Die Regierung will die Steuern in Berlin senken.",
        "Rad in Halter setzen. Achse in Lager.",
        "I'm sure that I've said it, and I'll say it. When I do, I'd",
        "- Item one of the list\n* Third of the",
        "the un-American and ex-President",
        "She has an iPhone and a deCODE kit with mRNA on macOS, from eBay",
    ],
)
def test_no_names_are_invented_in_scripts_and_languages_that_the_rules_do_not_know(text: str) -> None:
    assert mentioned(text) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("La capitale de la France est Paris et le fleuve la Seine.", ("France", "Paris", "Seine")),
        ("He met Antonín Dvořák in the house of the Wałęsa family", ("Antonín Dvořák", "Wałęsa")),
        ("It was written in C++ on a .NET platform", ("C++", ".NET")),
        ("the E\u0301cole Normale was there", ("École Normale",)),
        ("and then I went to London", ("London",)),
        ("he was in the U.S. Army there", ("U.S. Army",)),
        ("they saw Dr. Jones with J. K. Rowling", ("Dr. Jones", "J. K. Rowling")),
        ("the book 'Moby Dick' is there", ("Moby Dick",)),
    ],
)
def test_names_in_other_languages_and_with_signs(text: str, expected: tuple[str, ...]) -> None:
    assert mentioned(text) == expected


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


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.integers(5, 40))
def test_the_words_of_a_long_text_are_those_of_its_slices(parts: list[str], slice_chars: int) -> None:
    text = " ".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        expected = names.words(text)
        patch.setattr(segmentation, "_SLICE_CHARS", slice_chars + max(map(len, PARTS)))
        assert names.words(text) == expected


class RecordingPattern:
    """A regular expression, and how many characters each of its searches may read."""

    def __init__(self, pattern: regex.Pattern[str]) -> None:
        self._pattern = pattern
        self.chars: list[int] = []

    def search(self, text: str, start: int, end: int) -> regex.Match[str] | None:
        self.chars.append(min(end, len(text)) - start)
        return self._pattern.search(text, start, end)

    def match(self, text: str, start: int, end: int) -> regex.Match[str] | None:
        self.chars.append(min(end, len(text)) - start)
        return self._pattern.match(text, start, end)


@given(st.lists(st.sampled_from([*PARTS, "The Film", " of ", "\n"]), max_size=40), st.sampled_from([1, 5, 4_096]))
def test_names_do_not_depend_on_how_a_text_is_searched(parts: list[str], slice_chars: int) -> None:
    text = "".join(parts)
    expected = [run.group() for run in names._runs(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "_SLICE_CHARS", slice_chars)
        assert [run.group() for run in names._runs(text)] == expected


@pytest.mark.parametrize(
    "text",
    ["of the and with " * 16 + each for each in ("x" * 100_000, "A" + " " * 100_000, "A" * 100_000, "Ab " * 30_000)],
)
def test_names_are_searched_in_short_steps(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regular expression blocks all other threads, the event loop among them."""
    patterns = {name: RecordingPattern(getattr(names, name)) for name in ("_CAPITAL", "_PHRASE")}
    for name, pattern in patterns.items():
        monkeypatch.setattr(names, name, pattern)
    mentioned(text)
    chars = [each for pattern in patterns.values() for each in pattern.chars]
    assert len(chars) > 20
    assert max(chars) <= 4_097


def test_long_words_do_not_stay_in_memory() -> None:
    texts = [f"it names the {'A' * 1_000}{number}" for number in range(10)]
    caches = (names.words_of_chunk, segmentation.compounds)
    assert len(names.words("it names the")) == 3  # the short words stay, whatever ran before this test
    before = list(map(len, caches))
    assert all(len(mentioned(text)) == 1 and len(names.words(text)) == 4 for text in texts)
    assert list(map(len, caches)) == before


def test_a_long_run_of_capitalised_words_is_no_name() -> None:
    """It is a table or a list, and reading all of it in one step would stop the other threads."""
    assert all(len(name.split()) <= names.MAX_WORDS for name in names.mentioned("Alpha " * 100_000))
