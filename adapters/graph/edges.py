"""The edges of a document in the graph and their weights, the same for every engine."""

from __future__ import annotations

from adapters.graph.names import MAX_CHARS, MAX_LISTED_WORDS, MAX_WORDS, normal_forms, surname
from adapters.model.document import Link, Record

_EXPLICIT_WEIGHT = 3.0
_DERIVED_WEIGHT = 0.9
OWN_WEIGHT = 1.0
"""The weight of a document beside its edges: by this part a walk returns from it to its seeds. A name that no other
document has, such as its own title, leads to a document and not away from it: otherwise a walk would stay longer at
documents with such names, which says nothing about them."""
_DERIVED_TYPES = frozenset({"co_citation", "bib_coupling", "bibliographic_coupling"})
"""Links that were computed from other links carry less information than those that an author wrote."""
_MIN_WEIGHT = 1e-30
"""Minimum weight of a link: smaller ones may be 0 in single precision, and then a document's edges weigh nothing."""


def entity_names(record: Record) -> dict[str, bool]:
    """The entities that a document mentions, in normal form, and whether its author lists them.

    Authors are mentioned by surname, too, and a document mentions its own title. A title of more than
    :data:`adapters.graph.names.MAX_WORDS` words is left out, a listed name of more than
    :data:`adapters.graph.names.MAX_LISTED_WORDS`, and every name of more than
    :data:`adapters.graph.names.MAX_CHARS` characters.
    """
    is_listed = record.document.entities is not None
    names = dict.fromkeys(normal_forms(record.document.title), False)
    names = {name: False for name in names if len(name.split()) <= MAX_WORDS}
    for entity in record.entities:
        names |= dict.fromkeys((*normal_forms(entity), surname(entity)), is_listed)
    return {name: listed for name, listed in names.items() if 0 < len(name) <= MAX_CHARS and _is_short(name)}


def _is_short(name: str) -> bool:
    return name.count(" ") < MAX_LISTED_WORDS


def link_weight(link: Link) -> float:
    """The weight of a link's edge. The edge of a mention weighs ``(degree of the name) ** -0.5``."""
    return max(link.weight * (_DERIVED_WEIGHT if link.type in _DERIVED_TYPES else _EXPLICIT_WEIGHT), _MIN_WEIGHT)
