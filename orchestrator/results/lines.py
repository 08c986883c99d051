"""Texts of documents as parts of lines."""

from __future__ import annotations


def one_line(text: str, max_chars: int) -> str:
    """The text without line breaks and other characters that cannot be printed, cut to a number of characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"
