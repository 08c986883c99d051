"""The texts of hits within a number of tokens, as one text with citations or hit by hit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.results.context_text import as_context, within_tokens
from orchestrator.results.tokens import Measure
from orchestrator.schema.hits import SearchHit
from tests.orchestrator.services import word_ends

MEASURE = Measure(word_ends)
TEXTS = st.lists(
    st.text(max_size=300) | st.lists(st.sampled_from(["word", "[2] Title", "\n", "[1]"]), max_size=80).map(" ".join),
    max_size=6,
)


def hit(**fields: object) -> SearchHit:
    """A hit with these fields, and nothing in the others."""
    nothing = {
        "id": "d", "parent_id": None, "collection": "documents", "title": "", "text": "", "snippet": None, "url": None,
        "created_at": None, "importance": None, "sensitivity": "normal", "tags": (), "language": None, "metadata": {},
        "score": 1.0, "fusion_score": 1.0, "confidence": None, "method": "keyword", "found_in": (), "sources": {},
        "boosts": {}, "embedding_model": "test", "chunker_version": None, "chunk_index": None, "heading_path": (),
        "section": None, "window_id": None, "span": (0, 0), "source_span": None, "neighbor_ids": (),
        "visibility": "tenant",
    }  # fmt: skip
    return SearchHit(**(nothing | fields))  # type: ignore[arg-type]


def hits_of(texts: list[str]) -> list[SearchHit]:
    return [hit(id=f"d{number}", title=f"Title {number}", text=text) for number, text in enumerate(texts)]


def test_each_passage_has_its_number_its_headings_where_it_is_from_and_its_text() -> None:
    hits = [
        hit(id="a", title="Stars", text="They shine.", url="https://a", heading_path=("Stars", "Light")),
        hit(id="b", collection="notes", title="", text="  Planets\ndo not.\n"),
    ]
    context = as_context(hits, 1_000, MEASURE)
    assert context.text == "[1] Stars > Light\nhttps://a\nThey shine.\n\n[2] notes/b\nPlanets\ndo not."
    assert (context.tokens, context.hits, context.cut) == (MEASURE.tokens(context.text), 2, False)


def test_no_line_of_a_document_looks_like_a_citation() -> None:
    context = as_context([hit(text="[1] one\n[2] two\r[ 3 ] three\u2028\u200b[4] four, see [5]")], 1_000, MEASURE)
    assert context.text == "[1] documents/d\n [1] one\n [2] two\r [ 3 ] three\u2028 \u200b[4] four, see [5]"


@pytest.mark.parametrize(
    "fields",
    [{"title": "T\n[2] U"}, {"url": "https://a\u2028[2] b"}, {"id": "i\u2029[2] b"}, {"collection": "c\u2028[2]"}],
)
def test_no_name_of_a_document_begins_a_line(fields: dict[str, str]) -> None:
    lines = as_context([hit(text="text", **fields)], 1_000, MEASURE).text.splitlines()
    assert [line for line in lines if line.startswith("[")] == lines[:1]
    assert len(lines) == (3 if "title" in fields else 2)


def test_long_names_leave_room_for_the_text_and_for_other_passages() -> None:
    names = {"title": "title " * 600, "url": "https://a/" + "u" * 8_000, "id": "i" * 512, "collection": "c" * 512}
    context = as_context([hit(text="first " * 5, **names), hit(title="B", text="second " * 5)], 400, MEASURE)
    assert (context.hits, context.cut) == (2, False)
    assert "first first" in context.text
    assert "second second" in context.text


def test_the_first_passage_is_there_however_small_the_room() -> None:
    context = as_context([hit(id="i" * 512, collection="c" * 512, text="word " * 300)], 100, MEASURE)
    assert (context.hits, context.cut) == (1, True)
    assert context.text.startswith("[1] cccc")


def test_of_a_long_text_only_what_may_fit_is_counted() -> None:
    counted: list[int] = []
    measure = Measure(lambda text: counted.append(len(text)) or word_ends(text))
    context = as_context([hit(text="word " * 200_000), hit(text="other")], 100, measure)
    assert (context.hits, context.cut) == (1, True)
    assert max(counted) <= measure.max_chars(100)


def test_a_passage_of_a_few_words_that_is_cut_is_left_out() -> None:
    context = as_context(hits_of(["word " * 85, "other " * 200]), 100, MEASURE)
    assert (context.hits, context.cut) == (1, True)


def test_what_has_no_room_is_cut_and_the_rest_is_left_out() -> None:
    hits = hits_of(["word " * 40, "other " * 200, "last"])
    context = as_context(hits, 100, MEASURE)
    assert (context.hits, context.cut) == (2, True)
    assert context.tokens <= 100
    assert "other" in context.text
    assert "last" not in context.text


def test_without_hits_there_is_no_text() -> None:
    context = as_context([], 100, MEASURE)
    assert (context.text, context.tokens, context.hits, context.cut) == ("", 0, 0, False)


@given(TEXTS, st.integers(100, 300))
def test_a_context_fits_and_its_citations_are_the_hits_in_their_order(texts: list[str], max_tokens: int) -> None:
    context = as_context(hits_of(texts), max_tokens, MEASURE)
    assert context.tokens <= max_tokens
    cited = re.findall(r"^\[(\d+)\] Title (\d+)$", context.text, re.MULTILINE)
    assert cited == [(str(number + 1), str(number)) for number in range(context.hits)]
    assert context.cut or context.hits == len(texts)


@given(TEXTS, st.integers(100, 300))
def test_texts_together_fit_and_are_the_beginnings(texts: list[str], max_tokens: int) -> None:
    limited = within_tokens(hits_of(texts), max_tokens, MEASURE)
    shown = [each.text for each in limited]
    assert sum(MEASURE.tokens(text) for text in shown if text) <= max_tokens
    assert all(whole.startswith(text) for whole, text in zip(texts, shown, strict=True))
    cut = [number for number, (whole, text) in enumerate(zip(texts, shown, strict=True)) if whole != text]
    assert all(not shown[number] for number in range(cut[0] + 1, len(texts))) if cut else shown == texts


def test_a_span_ends_where_the_text_is_cut() -> None:
    (limited,) = within_tokens([hit(text="word " * 300, span=(10, 900))], 100, MEASURE)
    assert limited.span == (10, len(limited.text))
    assert 400 < len(limited.text) < 500
