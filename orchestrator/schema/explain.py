"""``explain: true``: how a response was computed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType

from adapters.model.term_score import TermScore
from fusion.values import CollapseMode


class ExplainedHit(Struct, frozen=True):
    """One document of one source before fusion.

    :param normalized: the score from 0, the lowest of the listed ones, to 1, the highest; for reading only.
    :param terms: of the query that the document has, if it is a hit of the page, and the source ranks by terms.
    """

    id: str
    collection: str
    rank: int
    score: float
    normalized: float
    terms: tuple[TermScore, ...] | UnsetType = UNSET


class RemovedDocument(Struct, frozen=True):
    """A document that did not become a hit."""

    id: str
    collection: str


class Removed(Struct, frozen=True):
    """Documents that did not become hits, by the stage that removed them.

    ``filter``: documents that the principal may see and that the request's filter and collections exclude.
    ``collapsed``: each document with the one that replaces it. ``withheld`` should be 0: documents that a source
    returned although the filter excludes them. ``documents`` lists those of ``min_score`` and ``min_confidence``, the
    best 100 of each.
    """

    filter: int
    min_score: int
    min_confidence: int
    collapsed: Mapping[str, str]
    deleted: int
    withheld: int
    documents: Mapping[str, tuple[RemovedDocument, ...]]


class Explanation(Struct, frozen=True):
    """How a response was computed. ``generation``: the generation of the index that all hits are of, by name.
    ``expansions``: the synonyms that were added to the query.
    """

    generation: str
    profile: str
    fusion: str
    weights: Mapping[str, float]
    boosts: tuple[str, ...]
    collapse: CollapseMode
    depth: int
    encoder: str
    expansions: tuple[str, ...]
    rankings: Mapping[str, tuple[ExplainedHit, ...]]
    removed: Removed
