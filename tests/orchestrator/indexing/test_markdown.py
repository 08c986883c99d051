"""The sections of a text and what it refers to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.indexing.markdown import Reference, anchor_of, outline

LINES = st.lists(
    st.sampled_from(
        ["# One", "## Two ##", "### Three", "text", "", "- item", "> quoted", "    code", "```", "Sub", "---"]
    ),
    max_size=30,
).map("\n".join)
TEXTS = st.one_of(LINES, st.text(max_size=200), LINES.map(lambda text: text.replace("\n", "\r\n")))


@given(TEXTS)
def test_the_sections_cover_the_text(text: str) -> None:
    sections = outline(text).sections
    assert "".join(text[section.start : section.end] for section in sections) == text
    assert all(section.start <= section.body <= section.end for section in sections)


@given(TEXTS)
def test_a_section_has_text_below_its_heading(text: str) -> None:
    sections = outline(text).sections
    if len(sections) > 1:
        assert all(text[section.body : section.end].strip() for section in sections[1:])


def test_headings_are_those_above_a_section() -> None:
    text = "before\n# A `b`\n## C\nc\n\nD\n---\nd\n### E [¶](#e)\ne\n# F\nf\n"
    sections = outline(text).sections
    assert [section.headings for section in sections] == [
        (),
        ("A b", "C"),
        ("A b", "D"),
        ("A b", "D", "E"),
        ("F",),
    ]
    assert [text[section.body : section.end].strip() for section in sections] == ["before", "c", "d", "e", "f"]
    assert outline(text).title == "A b"


@pytest.mark.parametrize(
    "text",
    [
        "```\n# no heading\n```",
        "    # code",
        "- # in a list",
        "> # quoted",
        "#hashtag",
        "\\# escaped",
        "<!--\n# x\n-->",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert [section.headings for section in outline(text).sections] == [()]


def test_a_repeated_heading_has_an_anchor_of_its_own() -> None:
    anchors = [section.anchor for section in outline("# Use\na\n# Use\nb\n# Use it: now!\nc").sections]
    assert anchors == ["use", "use-1", "use-it-now"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Größe & Länge", "größe--länge"), ("`a.b()` x", "ab-x"), ("中文 标题", "中文-标题"), ("¡!", "")],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert anchor_of(heading) == anchor


def test_references_are_addresses_and_names_of_pages() -> None:
    text = (
        "See [a](b.md#c) and <https://example.org>.\n\n[[A page]], [[x|shown]], [[y#part]]\n\n"
        "![image](i.png) ![[no.png]] `[no](code.md)` [[]] [r]\n\n[r]: <with space.md>\n"
    )
    found = outline(text).references
    assert [(each.target, each.is_name) for each in found] == [
        ("b.md#c", False),
        ("https://example.org", False),
        ("A page", True),
        ("x", True),
        ("y", True),
        ("with space.md", False),
    ]
    assert [each.start for each in found[:5]] == [
        text.index(written) for written in ("b.md#c", "https", "[[A page", "[[x", "[[y")
    ]
    assert found[2] == Reference("A page", True, text.index("[[A page"))


def test_links_in_html_are_references() -> None:
    text = '<p align="center"><a class="x" href="a.md">a</a></p>\n\ntext <A HREF=\'b.md#c\'>b</A> <a name="x">y</a>'
    found = outline(text).references
    assert [each.target for each in found] == ["a.md", "b.md#c"]
    assert [text.index(each.target) for each in found] == [each.start for each in found]


def test_a_reference_in_a_long_block_is_where_it_is_written() -> None:
    text = f"# Long\n\n{'lorem ipsum. ' * 300}see [t](b.md) and [t](b.md)."
    first, second = outline(text).references
    assert text[first.start :].startswith("b.md) and")
    assert text[second.start :] == "b.md)."


@pytest.mark.parametrize("heading", ["C#", "F#", "Über uns"])
def test_only_a_link_to_itself_is_no_part_of_a_heading(heading: str) -> None:
    assert outline(f"# {heading} ¶\n\ntext").title == heading
    assert outline(f"<x>\n\n# {heading} [#](#self)\n\ntext").sections[-1].headings == (heading,)


@pytest.mark.parametrize("text", ["> " * 50_000, "[" * 50_000, "- a\n" * 5_000, "#" * 100_000, "`" * 50_000 + "a"])
def test_no_text_is_too_odd(text: str) -> None:
    assert outline(text).sections
