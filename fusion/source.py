"""The description of a source. Stages of a search read it; they contain no name of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

QueryInput: TypeAlias = Literal["query_vector", "expansions"]
"""What has to be computed from the query before the source can be searched."""


@dataclass(frozen=True, slots=True)
class Source:
    """The properties of one source that planning, retrieval, fusion and boosting use.

    :param name: key of weights, ``degraded``, explanations and settings.
    :param role: the rankings of ``text`` sources give the seeds of a second stage and decide whether it is needed. A
        ``graph`` source knows entities: it reports how much of a query they cover.
    :param needs: see :data:`QueryInput`.
    :param stage: 2 if the source may start from the results of the sources of stage 1.
    :param per_collection: whether several collections are searched one by one, so that each gets its own depth.
    :param exponent: of a score divided by the best score of the ranking, in ``joint_walk``; a multiple of 0.5. Above 1
        makes the head of the ranking sharper, below 1 flatter.
    :param comparable_scores: whether raw scores are comparable between queries (cosines are, BM25 scores are not).
    :param evidence: weight of a raw score in the evidence that a document answers a query; for a graph, of the entity
        coverage. 0 if the source gives none.
    :param usual_evidence: the evidence that nine in ten queries without an answer do not reach, over many corpora.
    :param tie_priority: equal sums are ordered by the rank in the source with the smallest priority; ``None`` for a
        source whose ranks are not used for that.
    :param fallback_priority: position in ``concatenate()``; the smallest comes first.
    :param exact_phrases: whether a query that is only quoted text searches only this source, which can require phrases.
    :param identifier_boost: whether its weight is higher for a query with an identifier.
    :param scaled_by_trust: whether the default weight is multiplied by the measured trust of the scope.
    :raises ValueError: if the exponent is no multiple of 0.5, or negative.
    """

    name: str
    role: Literal["text", "graph"] = "text"
    needs: frozenset[QueryInput] = frozenset()
    stage: Literal[1, 2] = 1
    per_collection: bool = True
    exponent: float = 1.0
    comparable_scores: bool = False
    evidence: float = 0.0
    usual_evidence: float = 0.0
    tie_priority: int | None = None
    fallback_priority: int = 100
    exact_phrases: bool = False
    identifier_boost: bool = False
    scaled_by_trust: bool = False

    def __post_init__(self) -> None:
        if not (self.exponent >= 0 and (2 * self.exponent).is_integer()):
            raise ValueError(f"source {self.name!r}: exponent is {self.exponent}, allowed are multiples of 0.5 from 0")

    @property
    def is_graph(self) -> bool:
        """Whether the source walks over a graph."""
        return self.role == "graph"


Sources: TypeAlias = Mapping[str, Source]
"""Sources by name."""


def described(name: str, sources: Sources) -> Source:
    """The description of a source; one with default values if there is none."""
    return sources.get(name) or Source(name)
