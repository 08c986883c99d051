"""Texts of documents on lines that are ours."""

from __future__ import annotations


def one_line(text: str, max_chars: int) -> str:
    """A text of a document on one line, cut, so that it begins no line of its own."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"
