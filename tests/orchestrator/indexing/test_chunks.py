"""Splitting documents into chunks."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Document, Link
from adapters.encoders.tokens import Tokens
from adapters.model.document import MAX_ID_BYTES
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.markdown import outline
from orchestrator.indexing.ndjson import checked

WORDS = st.sampled_from(["one", "two", "Größe", "中文字符", "it's", "a_b", "x.", "y!", "🎉", "\t"])
LINES = st.lists(WORDS, max_size=12).map(" ".join)
BLOCKS = st.one_of(LINES, LINES.map("# {}".format), LINES.map("## {}".format), LINES.map("- {}".format), st.just(""))
TEXTS = st.one_of(st.lists(BLOCKS, min_size=1, max_size=25).map("\n".join), st.text(min_size=1, max_size=300))
SIZES = st.integers(min_value=1, max_value=40)


@cache
def chunker(tokens: int) -> Chunker:
    return Chunker(all_tokens().splitter(tokens), tokens)


@cache
def all_tokens() -> Tokens:
    return Tokens()


def chunks_of(text: str, tokens: int = 20, **fields: Any) -> list[Document]:
    return chunker(tokens).chunked(Document(id="guide.md", text=text, **fields))


@given(TEXTS, SIZES)
def test_chunks_are_parts_of_their_document_and_leave_nothing_out(text: str, tokens: int) -> None:
    parent, *chunks = chunks_of(text, tokens)
    assert parent.text == text
    covered = set[int]()
    for chunk in chunks:
        assert chunk.parent_start is not None
        assert chunk.parent_end is not None
        assert text[chunk.parent_start : chunk.parent_end] == chunk.text
        covered.update(range(chunk.parent_start, chunk.parent_end))
    if chunks:
        left_out = "".join(text[index] for index in range(len(text)) if index not in covered)
        assert not re.search(r"[^\W_]", left_out)
        assert parent.chunk_count == len(chunks)
        assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
        assert len({chunk.id for chunk in chunks}) == len(chunks)


@given(TEXTS, SIZES)
def test_the_headings_of_a_chunk_are_those_above_it(text: str, tokens: int) -> None:
    sections = outline(text).sections
    for chunk in chunks_of(text, tokens)[1:]:
        assert chunk.parent_start is not None
        section = next(each for each in sections if each.start <= chunk.parent_start < each.end)
        assert chunk.heading_path == section.headings


@given(st.lists(LINES, min_size=2, max_size=6), st.integers(min_value=0, max_value=5), LINES)
def test_an_edit_leaves_the_chunks_of_other_sections(bodies: list[str], edited: int, body: str) -> None:
    def text(parts: list[str]) -> str:
        return "\n\n".join(f"# Section {number}\n\nof {part}" for number, part in enumerate(parts))

    edited %= len(bodies)
    changed = [*bodies]
    changed[edited] = body

    def others(parts: list[str]) -> dict[str, str]:
        own = f"guide.md#section-{edited}:"
        return {chunk.id: chunk.text for chunk in chunks_of(text(parts), 5)[1:] if not chunk.id.startswith(own)}

    assert others(bodies) == others(changed)


@given(TEXTS, SIZES)
def test_chunks_have_no_more_tokens_than_asked_for_besides_their_heading(text: str, tokens: int) -> None:
    sections = outline(text).sections
    for chunk in chunks_of(text, tokens)[1:]:
        assert chunk.parent_start is not None
        section = next(each for each in sections if each.start <= chunk.parent_start < each.end)
        body = text[max(chunk.parent_start, section.body) : chunk.parent_end]
        assert len(all_tokens().ends(body)) <= tokens or len(body.split()) == 1
        assert len(body) <= 16 * tokens


def test_an_edit_leaves_the_ids_of_a_section_with_the_same_heading() -> None:
    def ids(first: str) -> list[str]:
        text = f"# Use\n\n{first}\n\n# C++\n\n{'b ' * 30}\n\n# C#\n\n{'c ' * 30}\n\n# Use\n\n{'d ' * 30}"
        return [chunk.id for chunk in chunks_of(text)[1:] if chunk.text.endswith(("b", "c", "d"))]

    assert ids("a") == ids("a " * 90)
    assert len(set(ids("a"))) == len(ids("a"))


def test_a_word_without_an_end_is_cut() -> None:
    _, *chunks = chunks_of("x" * 1_000)
    assert [len(chunk.text) for chunk in chunks] == [320, 320, 320, 40]


def test_a_short_document_and_a_chunk_stay_whole() -> None:
    assert chunks_of("A short text.") == [Document(id="guide.md", text="A short text.")]
    given = Document(id="c", text="word " * 100, parent_id="guide.md")
    assert chunker(20).chunked(given) == [given]


def test_a_chunk_has_the_fields_of_its_document() -> None:
    fields: dict[str, Any] = {
        "title": "Guide",
        "sensitivity": "sensitive",
        "visibility": "team",
        "owner": "alice",
        "team": "legal",
        "tags": ("t",),
        "language": "en",
        "metadata": {"team": "x"},
        "collection": "docs",
        "url": "https://example.org/guide",
        "entities": ("Ada Lovelace", "Charles Babbage"),
        "links": (Link("other", "cites"),),
    }
    text = f"# First part\n\n{'Ada lovelace wrote. ' * 8}\n\n## Second\n\n{'more words here. ' * 8}"
    parent, first, *_, last = chunks_of(text, **fields)
    assert (parent.links, parent.entities) == (fields["links"], fields["entities"])
    assert (first.id, first.url, first.heading_path) == (
        "guide.md#first-part:0",
        "https://example.org/guide#first-part",
        ("First part",),
    )
    assert first.text.startswith("# First part")
    assert (first.entities, last.entities) == (("Ada Lovelace",), ())
    assert (last.heading_path, last.url) == (("First part", "Second"), "https://example.org/guide#second")
    assert last.links == (Link("guide.md", "part_of", target_collection="docs"),)
    for name in ("title", "sensitivity", "visibility", "owner", "team", "tags", "language", "metadata", "collection"):
        assert getattr(last, name) == fields[name]
    assert checked(first) == first


@pytest.mark.parametrize("id_", ["x" * MAX_ID_BYTES, "中" * (MAX_ID_BYTES // 3)])
def test_ids_are_as_long_as_allowed(id_: str) -> None:
    text = "\n\n".join(f"# {'heading ' * 30}{number}\n\n{'word ' * 30}" for number in range(3))
    chunks = chunker(20).chunked(Document(id=id_, text=text))[1:]
    assert all(len(chunk.id.encode()) <= MAX_ID_BYTES for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == len(chunks) > 3


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("Die Suche fragt drei Quellen. Sie antwortet in einer Liste. Jede Quelle hat eine Frist. " * 6, (".",)),
        ("搜索会同时询问三个来源。答案是一个列表。每个来源都有期限。" * 12, ("。",)),
        ("\n\n".join(["Ein Absatz mit einigen Wörtern, der hier zu Ende ist."] * 12), (".",)),
    ],
)
def test_passages_end_where_sentences_end(text: str, ends: tuple[str, ...]) -> None:
    chunks = chunks_of(text, 60)[1:]
    assert len(chunks) > 2
    assert all(chunk.text.endswith(ends) for chunk in chunks)


def test_chunks_that_are_too_large_together_are_refused() -> None:
    """Each chunk has the metadata of its document, so a line could grow a hundred times."""
    metadata = {f"key-{number}": "x" * 2_000 for number in range(100)}
    text = "word " * 2_000
    assert len(chunks_of(text, 40, metadata={"key": "x"})) > 50
    with pytest.raises(ValueError, match=r"text: \d\d chunks and more, which have 16\d{6} bytes with the metadata"):
        chunks_of(text, 20, metadata=metadata)


def test_what_describes_a_chunk_alone_is_not_that_of_other_chunks() -> None:
    fields = {"local_summary": "the beginning", "local_keywords": ("begin",), "keywords": ("all",)}
    document, *chunks = chunks_of("word " * 100, **fields)
    assert (document.local_summary, document.local_keywords) == ("the beginning", ("begin",))
    assert {(chunk.local_summary, chunk.local_keywords, chunk.keywords) for chunk in chunks} == {("", (), ("all",))}


@given(TEXTS, SIZES)
def test_what_is_around_a_chunk_is_the_text_beside_it_within_its_section(text: str, tokens: int) -> None:
    document, *chunks = chunks_of(text, tokens) if text.strip() else [None]
    for chunk in chunks:
        assert chunk.parent_start is not None
        assert chunk.parent_end is not None
        for around, place in (
            (chunk.text_before, slice(chunk.parent_start)),
            (chunk.text_after, slice(chunk.parent_end, None)),
        ):
            beside = document.text[place].strip()
            assert beside.endswith(around) if place.start is None else beside.startswith(around)
            assert len(all_tokens().ends(around)) <= 20 + 1  # a cut word may be another token


def test_what_is_around_a_chunk_ends_with_its_section() -> None:
    text = "# One\n\n" + "one " * 60 + "\n\n# Two\n\n" + "two " * 60
    _, *chunks = chunks_of(text, 40)
    first, second, third, *_ = chunks
    assert (first.text_before, first.text_after.split()) == ("", ["one"] * 20)
    assert second.text_after == ""
    assert (third.heading_path, third.text_before, third.text_after.split()) == (("Two",), "", ["two"] * 20)


@pytest.mark.parametrize("blank", ["", "\u00a0", "\u2028", "\u0085", "---", "| - | - |"])
def test_a_heading_that_nothing_readable_follows_is_in_a_chunk(blank: str) -> None:
    text = "# Guide\n\n" + "one " * 40 + f"\n\n## Kettle\n\n{blank}\n\n## Other\n\n" + "two " * 40
    assert any("Kettle" in chunk.text for chunk in chunks_of(text)[1:])


def test_passages_without_letters_and_digits_are_no_chunks() -> None:
    text = "| name | value |\n|" + "-" * 400 + "|\n| one | two |\n\n" + "word " * 40
    assert all(re.search(r"\w", chunk.text) for chunk in chunks_of(text)[1:])


def test_white_space_in_a_heading_is_a_space() -> None:
    _, *chunks = chunks_of("# Step 1:\tInstall\u0085it\n\n" + "word " * 40)
    assert {chunk.heading_path for chunk in chunks} == {("Step 1: Install it",)}
    assert all(checked(chunk) == chunk for chunk in chunks)


def test_lines_of_a_text_that_is_no_markdown_are_no_headings() -> None:
    text = "# not a heading\n" + "word " * 15 + "\n# nor this\n" + "word " * 15
    _, *chunks = chunker(20).chunked(Document(id="a.txt", text=text), is_structured=False)
    assert min(len(chunk.text.split()) for chunk in chunks) > 5


def test_places_of_the_document_are_not_those_of_its_chunks() -> None:
    _, *chunks = chunks_of("word " * 100, window_id="w", window_index=3, neighbor_chunk_ids=("x",))
    assert {(chunk.window_id, chunk.window_index, chunk.neighbor_chunk_ids) for chunk in chunks} == {(None, None, ())}
