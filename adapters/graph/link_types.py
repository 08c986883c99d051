"""The strengths of link types: how far a walk follows links in each direction; those to a parent less, or not at all.

A heading, a class or a folder has links to everything below it and little text of its own. A walk to it from every
passage that matches a query would rank it above these passages. Links in the other direction do not have this effect.
docs/decisions/0025-trust-by-query.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.ports.graph import LinkStrength

TypeStrengths = Mapping[str, tuple[float, float]]
"""Strengths by link type: from source to target, and from target to source."""

_TO_PARENT = frozenset(
    ("part_of", "is_part_of", "parent", "has_parent", "child_of", "belongs_to", "contained_in", "section_of")
)
_TO_CHILD = frozenset(("has_part", "contains", "parent_of", "child", "has_child", "children", "has_section"))
KNOWN_STRENGTHS: TypeStrengths = dict.fromkeys(_TO_PARENT, (0.0, 1.0)) | dict.fromkeys(_TO_CHILD, (1.0, 0.0))
"""The strengths of link types with well-known names."""
_MIN_LINKS = 20
"""Minimum number of links for a strength that is derived from their pattern."""
_TREE_DISPERSION, _OTHER_DISPERSION = 0.2, 0.4
_TREE_PARENTS, _MAX_PARENTS = 1.4, 1.7
_MIN_CHILDREN, _TREE_CHILDREN = 1.5, 2.0
_MAX_FULL_LENGTH = 25.0


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The links of one type in one scope; those between the same two documents count once.

    :param documents: number of documents at either end of a link.
    :param sources: number of documents that have a link.
    :param targets: number of documents that a link leads to.
    :param squares_by_source: sum over the sources of the square of their number of links.
    :param squares_by_target: the same over the targets.
    """

    links: int
    documents: int
    sources: int
    targets: int
    squares_by_source: int
    squares_by_target: int

    def forward_hierarchy(self) -> float:
        """The degree to which links lead from a child to its parent, from 0 to 1."""
        return self._hierarchy(self.squares_by_source, self.sources, self.targets)

    def backward_hierarchy(self) -> float:
        """The degree to which links lead from a parent to its child, from 0 to 1."""
        return self._hierarchy(self.squares_by_target, self.targets, self.sources)

    def _hierarchy(self, squares: int, children: int, parents: int) -> float:
        """The degree, from the number of parents of a document: in a tree each but the root has exactly one.

        Its variance divided by its mean (the index of dispersion: Cox, Lewis, "The Statistical Analysis of Series of
        Events", 1966, section 6) is 0 for a tree and 1 for links at random. A third of the children with a second
        parent make it 0.2. It is 0 for links to the five nearest neighbours, too, so a child has about one parent; and
        a parent has about two children or more.
        """
        if self.links < _MIN_LINKS:
            return 0.0
        mean = self.links / self.documents
        dispersion = (squares / self.documents - mean**2) / mean
        return (
            _limited((_OTHER_DISPERSION - dispersion) / (_OTHER_DISPERSION - _TREE_DISPERSION))
            * _limited((_MAX_PARENTS - self.links / children) / (_MAX_PARENTS - _TREE_PARENTS))
            * _limited((self.links / parents - _MIN_CHILDREN) / (_TREE_CHILDREN - _MIN_CHILDREN))
        )


def link_strength(type_: str, counts: LinkCounts, chosen: TypeStrengths) -> LinkStrength:
    """The strength of a type: as set, else by its name, else by the pattern of its links."""
    if type_ in chosen:
        forward, backward = chosen[type_]
        return LinkStrength(type_, forward, backward, "as set")
    name = type_.lower().replace("-", "_").replace(" ", "_")
    if name in KNOWN_STRENGTHS:
        kin = "parent" if name in _TO_PARENT else "child"
        return LinkStrength(type_, *KNOWN_STRENGTHS[name], f"leads to a {kin}, by its name")
    forward, backward = counts.forward_hierarchy(), counts.backward_hierarchy()
    if max(forward, backward) == 0.0:
        return LinkStrength(type_, 1.0, 1.0, "no hierarchy")
    kin = "parent" if forward >= backward else "child"
    reason = f"leads to a {kin}, by the pattern of {counts.links} links"
    return LinkStrength(type_, round(1.0 - forward, 6), round(1.0 - backward, 6), reason)


def full_length(words: float, documents: int) -> float:
    """Number of words from which on a document receives all of a walk's mass: 25, or half of the average if less.

    A document with a fraction of these words, such as a heading, receives that fraction.

    :param words: of all documents of a scope together.
    :param documents: number of documents, at least 1.
    """
    return min(_MAX_FULL_LENGTH, max(words / documents / 2, 1.0))


def _limited(value: float) -> float:
    return min(max(value, 0.0), 1.0)
