"""Names that are allowed, for errors: all of them, and the nearest to the one that was given."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_CHARS = 80
"""A longer name is not compared: it takes long, and is no misspelling."""
_MAX_COMPARED = 500


def allowed_names(name: str, names: Iterable[str], more: str = "") -> str:
    """The names that are allowed, and the nearest to ``name``; empty if there are none.

    :param more: what else is allowed.
    """
    known = list(names)
    if not known:
        return ""
    near = nearest(name, known)
    return f"allowed are {', '.join(known)}{f', {more}' if more else ''}{f'; the nearest is {near}' if near else ''}"


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that is spelled most like ``name``; empty if none is like it."""
    return next(iter(close_names(name, names, 1)), "")


def close_names(name: str, names: Iterable[str], count: int) -> list[str]:
    """The names that are spelled most like ``name``, the nearest first.

    Of many names some are compared only, those with the same first letter before others: comparing takes 20 µs for
    each, and long names of few letters take seconds.
    """
    if not 0 < len(name) <= _MAX_CHARS:
        return []
    by_lower = {each.lower(): each for each in names if len(each) <= _MAX_CHARS}
    lower = name.lower()
    compared = sorted(by_lower, key=lambda each: each[:1] != lower[:1])[:_MAX_COMPARED]
    return [by_lower[each] for each in get_close_matches(lower, compared, count)]
