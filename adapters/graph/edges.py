"""The edges of a document in the graph and their weights, the same for every engine."""

from __future__ import annotations

from adapters.graph.names import MAX_CHARS, MAX_WORDS, normalize, surname
from adapters.model.document import Link, Record

_EXPLICIT_WEIGHT = 3.0
_DERIVED_WEIGHT = 0.9
_DERIVED_TYPES = frozenset({"co_citation", "bib_coupling", "bibliographic_coupling"})
"""Links that were computed from other links carry less information than those that an author wrote."""
_MIN_WEIGHT = 1e-30
"""Minimum weight of a link: smaller ones may be 0 in single precision, and then a document's edges weigh nothing."""


def entity_names(record: Record) -> set[str]:
    """The entities that a document mentions, in normal form: by name, authors also by surname, and its own title.

    A title of more than :data:`adapters.graph.names.MAX_WORDS` words is left out, and every name of more than
    :data:`adapters.graph.names.MAX_CHARS` characters.
    """
    names = {name for entity in record.entities for name in (normalize(entity), surname(entity))}
    title = normalize(record.document.title)
    if len(title.split()) <= MAX_WORDS:
        names.add(title)
    return {name for name in names if 0 < len(name) <= MAX_CHARS}


def link_weight(link: Link) -> float:
    """The weight of a link's edge. The edge of a mention weighs ``(degree of the name) ** -0.5``."""
    return max(link.weight * (_DERIVED_WEIGHT if link.type in _DERIVED_TYPES else _EXPLICIT_WEIGHT), _MIN_WEIGHT)
