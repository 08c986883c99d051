"""Names that are allowed, for errors: all of them, and the nearest to the one that was given."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_CHARS = 80
"""A longer name is not compared: it takes long, and is no misspelling."""


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
    by_lower = {each.lower(): each for each in names}
    found = get_close_matches(name.lower(), by_lower, 1) if len(name) <= _MAX_CHARS else ()
    return by_lower[found[0]] if found else ""
