"""Extraction of entity names from the text of documents that list none: by rules, or by a user-supplied function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from adapters.graph.names import mentioned
from adapters.model.document import trimmed
from adapters.model.errors import Rejected
from adapters.ports import plugin

Extractor: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the names that a text mentions, each once."""

RULES, NONE = "rules://", "none://"
FORMS = f"{RULES}, {NONE}, {plugin.FORM}"


_RULES_RECIPE = 2
"""Part of the build id: increased whenever the rules find other names in the same text."""


def extractor_identity(address: str) -> str:
    """The identity of the extractor, in one word; a part of the build id."""
    return f"{RULES}{_RULES_RECIPE}" if address == RULES else address


def extractor(address: str) -> Extractor:
    """The extractor at an address.

    :raises ValueError: if the address has none of the forms :data:`FORMS`.
    :raises Unavailable: if a user-supplied function cannot be imported.
    """
    if address == RULES:
        return mentioned
    if address == NONE:
        return lambda _: ()
    function = plugin.import_function(address, FORMS)
    return lambda text: _validated(function(text), address)


def _validated(names: object, address: str) -> tuple[str, ...]:
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise Rejected(f"{address} returned {type(names).__name__}, allowed are lists, tuples and sets of texts")
    return trimmed(sorted(names) if isinstance(names, set | frozenset) else names)
