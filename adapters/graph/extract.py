"""What finds the names in a text, for documents that bring none: rules, nothing, or a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from adapters import plugin
from adapters.document import trimmed
from adapters.errors import Rejected
from adapters.graph.names import mentioned

Extractor: TypeAlias = Callable[[str], tuple[str, ...]]
"""A text to the names that it mentions, each once."""

RULES, NONE = "rules://", "none://"
FORMS = f"{RULES}, {NONE}, {plugin.FORM}"


def extractor(address: str) -> Extractor:
    """The extractor at an address.

    :raises ValueError: if that is none of :data:`FORMS`.
    :raises Unavailable: if a function of the user's cannot be imported.
    """
    if address == RULES:
        return mentioned
    if address == NONE:
        return lambda _: ()
    function = plugin.function(address, FORMS)
    return lambda text: _names(function(text), address)


def _names(found: object, address: str) -> tuple[str, ...]:
    if not isinstance(found, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in found):
        raise Rejected(f"{address} gave {type(found).__name__}, allowed are lists, tuples and sets of texts")
    return trimmed(sorted(found) if isinstance(found, set | frozenset) else found)
