"""Snippets: which part of a text is shown, and which of its words are marked."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.keyword.snippets import END, SNIPPET_CHARS, START, snippet

FILLER = "nothing of interest is said here at all " * 40


def marked(shown: str) -> list[str]:
    return re.findall(f"{START}(.*?){END}", shown)


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("The studies of Nolan", "study nolan", ["studies", "Nolan"]),
        ("He runs; running is what a runtime does", "run", ["runs", "running"]),
        ("École normale", "ecole", ["École"]),
        ("ecole normale", "École", ["ecole"]),
        ("İstanbul and Straße", "straße", ["Straße"]),
        ("Straßen, Æsop", "strassen aesop", ["Straßen", "Æsop"]),
        ("snake_case name", "case", ["case"]),
        ("to be or not to be", "to be or not to be", ["to", "be", "or", "not", "to", "be"]),
        ("the cat", "the cat", ["cat"]),
        ("nothing", "else", []),
        ("", "word", []),
    ],
)
def test_the_words_of_the_query_are_marked_in_all_their_forms(text: str, query: str, words: list[str]) -> None:
    assert marked(snippet(text, query)) == words


def test_the_part_with_most_words_of_the_query_is_shown() -> None:
    text = f"An alpha. {FILLER} An alpha and a beta. {FILLER} A beta."
    shown = snippet(text, "alpha beta")
    assert marked(shown) == ["alpha", "beta"]
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_text_without_a_word_of_the_query_is_shown_from_its_beginning() -> None:
    assert snippet("Short  text\n\nof two lines", "other") == "Short text of two lines"
    assert snippet(FILLER, "other").startswith("nothing of interest")
    assert snippet(FILLER, "other").endswith("…")


def test_everything_but_the_marks_is_escaped() -> None:
    shown = snippet("<script>alert('x')</script> & <mark>", "alert mark")
    assert shown == "&lt;script&gt;<mark>alert</mark>(&#x27;x&#x27;)&lt;/script&gt; &amp; &lt;<mark>mark</mark>&gt;"


def test_a_snippet_is_cut_at_words() -> None:
    shown = snippet(FILLER + "the word " + FILLER, "word")
    assert set(unescape(shown).replace(START, "").replace(END, "").strip("…").split()) <= {
        *FILLER.split(),
        "the",
        "word",
    }


@given(st.text(max_size=600), st.text(max_size=40))
def test_a_snippet_of_any_text_is_a_part_of_it(text: str, query: str) -> None:
    shown = unescape(snippet(text, query).replace(START, "").replace(END, "")).strip("…")
    assert len(shown) <= SNIPPET_CHARS + 2
    assert " ".join(shown.split()) in " ".join(text.split()) or "…" in text or "&" in text
