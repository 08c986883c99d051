"""Quoted text in a query: in straight, curly, German, French, Nordic, full-width or Japanese quotes."""

from __future__ import annotations

import regex

# A straight quote after a letter or a digit is a sign of inches.
_QUOTED = regex.compile(
    '["＂]([^"＂]+)["＂]|[“„‟]([^“”„‟]+)[”“]|”([^“”„‟]+)”|«([^«»]+)»|»([^«»]+)«|‹([^‹›]+)›|「([^「」]+)」|『([^『』]+)』'  # noqa: RUF001
)


def quoted(query: str) -> list[str]:
    """The quoted texts of a query, in order."""
    return [found[found.lastindex or 0] for found in _QUOTED.finditer(query)]


def unquoted(query: str) -> list[str]:
    """The texts of a query between its quoted texts, in order."""
    return _QUOTED.sub("\0", query).split("\0")


def is_quoted(query: str) -> bool:
    """Whether a query is quoted text and nothing else."""
    texts = unquoted(query)
    return len(texts) > 1 and not any(map(str.strip, texts))
