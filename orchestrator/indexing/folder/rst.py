"""reStructuredText as Markdown, as far as chunks and links need it: headings, links, references to other files.

docutils, "reStructuredText Markup Specification": sections, hyperlink references; Sphinx: ``:doc:``, ``toctree``.
Everything else stays as it is: it is read as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")
"""An underline or overline: one punctuation character, three times or more."""
_MARKDOWN = re.compile(r" {1,3}(#{1,6}(\s|$)|(=+|-+)\s*$)| {0,3}(~{3,}|`{3,})")
"""What would be a heading or a fence in Markdown, and is not here: more spaces make it a plain line."""
_MAX_LEVEL = 6
_DOC = re.compile(r":doc:`(?:([^`<]*?)\s*<([^`>]+)>|([^`]+))`")
_LINK = re.compile(r"`([^`<]+?)\s*<([^`<>\s]+)>`__?")
_TOCTREE = re.compile(r"\s*\.\.\s+toctree::")
_ENTRY = re.compile(r"\s+(?:([^<>:]+?)\s*<([^<>\s]+)>|([\w./-]+))\s*")


def to_markdown(text: str) -> str:
    """The text with headings, and links to other files, as in Markdown."""
    return "\n".join(_with_links(_with_headings(text.split("\n"))))


def _with_headings(lines: list[str]) -> Iterator[str]:
    levels: dict[tuple[str, bool], int] = {}
    index = 0
    while index < len(lines):
        title = _title(lines, index)
        if title is None:
            yield f"    {lines[index]}" if _MARKDOWN.match(lines[index]) else lines[index]
            index += 1
            continue
        text, sign, has_overline = title
        level = levels.setdefault((sign, has_overline), len(levels) + 1)
        yield f"{'#' * min(level, _MAX_LEVEL)} {text}"
        index += 3 if has_overline else 2


def _title(lines: list[str], index: int) -> tuple[str, str, bool] | None:
    """The title that begins at a line, its character, and whether there is a line above it."""
    above, title, below = (*lines[index : index + 3], "", "", "")[:3]
    if _LINE.fullmatch(above) and title.strip() and below.rstrip() == above.rstrip():
        return title.strip(), above[0], True
    is_title = above.strip() and not above[0].isspace() and not _LINE.fullmatch(above)
    if is_title and _LINE.fullmatch(title) and len(title.rstrip()) >= len(above.rstrip()):
        return above.strip(), title[0], False
    return None


def _with_links(lines: Iterator[str]) -> Iterator[str]:
    in_toctree = False
    for line in lines:
        if _TOCTREE.match(line):
            in_toctree = True
        elif in_toctree and line.strip():
            in_toctree = line[0].isspace()
            if in_toctree and (entry := _ENTRY.fullmatch(line)):
                target = entry[2] or entry[3]
                yield f"- [{entry[1] or target}]({target})"
                continue
        documents = _DOC.sub(lambda found: f"[{found[1] or found[2] or found[3]}]({found[2] or found[3]})", line)
        yield _LINK.sub(r"[\1](\2)", documents)
