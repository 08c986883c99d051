"""The structure of a text in Markdown (CommonMark 0.31): its sections, and what it refers to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_HEADING_CHARS = 512
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_WIKI_LINK = re.compile(r"(?<!!)\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_PERMALINK = re.compile(r"\s*[¶🔗]+\s*$|\s+#\s*$")
"""What generators of documentation add to a heading: a link to itself."""
_ANCHOR = re.compile(r"""<a\s[^>]{0,1000}?\bhref\s*=\s*["']([^"'<>\s]{1,2000})["']""", re.IGNORECASE)
_TITLE = re.compile(r"<h1[^>]{0,1000}>(.{1,1000}?)</h1>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]{0,1000}>")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


class Section(NamedTuple):
    """A part of a text: its heading, and what follows up to the next heading.

    :param headings: its own one, after those that it is below.
    :param anchor: of its own heading, as GitHub makes it; empty before the first heading.
    :param start: of the heading; ``body``: of what follows it; ``end``: of the section. In characters.
    """

    headings: tuple[str, ...]
    anchor: str
    start: int
    body: int
    end: int


class Reference(NamedTuple):
    """What a text refers to: an address, or with ``is_name`` the name of a page, as in ``[[name]]``.

    :param start: where it is in the text, in characters.
    """

    target: str
    is_name: bool
    start: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The sections of a text, which cover it, and its references, both in order.

    :param title: the first heading, of Markdown or ``h1`` of HTML above it; empty without one.
    """

    sections: Sequence[Section]
    references: Sequence[Reference]
    title: str


def outline(text: str) -> Outline:
    """The structure of a text. Blocks: 4 MB take a second."""
    starts = [0, *(line.end() for line in _LINE.finditer(text))]
    tokens = _parser().parse(text)
    sections = _sections(tokens, starts, text)
    return Outline(sections, list(_references(tokens, starts, text)), _title(tokens, sections))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415, takes 40 ms, and only who splits texts needs it

    return MarkdownIt("commonmark")


def whole(text: str) -> Section:
    """A text without sections as one."""
    return Section((), "", 0, 0, len(text))


def anchor_of(heading: str) -> str:
    """The anchor of a heading as GitHub makes it, without the number that a repeated one has."""
    return _NOT_IN_ANCHORS.sub("", heading.strip().lower()).replace(" ", "-")


def _sections(tokens: Sequence[Token], starts: Sequence[int], text: str) -> list[Section]:
    """A heading that nothing follows is a part of the next section; at the end of the text, of the section before."""
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    anchors: Counter[str] = Counter()
    start, body, anchor = 0, 0, ""
    for index, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        first, last = token.map
        if text[body : starts[first]].strip():
            sections.append(Section(tuple(name for _, name in path), anchor, start, body, starts[first]))
            start = starts[first]
        body = starts[min(last, len(starts) - 1)]
        level, heading = int(token.tag[1:]), _plain(tokens[index + 1])[:MAX_HEADING_CHARS]
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, heading))
        repeated = anchors[anchor := anchor_of(heading)]
        anchors[anchor] += 1
        anchor = f"{anchor}-{repeated}" if repeated else anchor
    if sections and not text[body:].strip():
        sections[-1] = sections[-1]._replace(end=len(text))
    else:
        sections.append(Section(tuple(name for _, name in path), anchor, start, body, len(text)))
    return sections


def _title(tokens: Sequence[Token], sections: Sequence[Section]) -> str:
    for token in tokens:
        if token.type == "heading_open" and not token.level:
            break
        if token.type == "html_block" and (found := _TITLE.search(token.content)):
            return " ".join(_TAG.sub("", found[1]).split())[:MAX_HEADING_CHARS]
    return next((section.headings[0] for section in sections if section.headings), "")


def _plain(inline: Token) -> str:
    """The text of a heading, without markup."""
    parts = [" " if child.type == "softbreak" else child.content for child in inline.children or ()]
    return " ".join(_PERMALINK.sub("", "".join(parts)).split())


def _references(tokens: Sequence[Token], starts: Sequence[int], text: str) -> Iterator[Reference]:
    start = place = end = 0
    for token in tokens:
        if token.map is not None:
            start = place = starts[token.map[0]]
            end = starts[token.map[1]]
        for child in token.children or [token]:
            for written, name in _targets(child):
                if (found := text.find(written, start, end)) >= 0:  # the address of a label is elsewhere
                    place, start = found, found + len(written)
                yield Reference(unquote(written) if name is None else name, name is not None, place)


def _targets(child: Token) -> Iterator[tuple[str, str | None]]:
    """What is written in a text for each reference, and the name if it is by name."""
    if child.type == "link_open" and isinstance(target := child.attrs.get("href"), str) and target:
        yield target, None
    elif child.type in {"html_inline", "html_block"}:
        for match in _ANCHOR.finditer(child.content):
            yield match[1], None
    elif child.type == "text":
        for match in _WIKI_LINK.finditer(child.content):
            if name := match.group(1).strip():
                yield match[0], name
