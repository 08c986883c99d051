"""Which edges a document has in the graph, and how strong each is, whatever engine keeps it."""

from __future__ import annotations

from adapters.document import Link, Record
from adapters.graph.names import MAX_WORDS, normalize, surname

_EXPLICIT = 3.0
_DERIVED = 0.9
_DERIVED_TYPES = frozenset({"co_citation", "bib_coupling", "bibliographic_coupling"})
"""Links that were computed from other links say less than those that an author made."""


def named(record: Record) -> set[str]:
    """What a document is called and what it mentions, in normal form; authors by their surnames, too."""
    found = {name for entity in record.entities for name in (normalize(entity), surname(entity)) if name}
    called = normalize(record.document.title)
    return found | {called} if called and len(called.split()) <= MAX_WORDS else found


def strength(link: Link) -> float:
    """How much flows along a link; a mention of a name has ``degree of the name ** -0.5``."""
    return link.weight * (_DERIVED if link.type in _DERIVED_TYPES else _EXPLICIT)
