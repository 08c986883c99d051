"""The confidence that documents answer a query, from the raw scores of the sources.

A fusion score does not express it, because it is relative to the best of each source. Raw scores do, compared with
those of queries that the documents do not answer: the evidence of a document is a weighted sum of its raw scores, and a
:class:`Calibration` maps it to a confidence by a logistic curve (Platt: "Probabilistic Outputs for Support Vector
Machines", 1999).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from fusion.columns import Candidates
from fusion.rank_fields import Floats
from fusion.source import Source, Sources, described

_MAX_EXPONENT = 700.0


class Calibration(Struct, frozen=True, gc=False):
    """``threshold`` is the evidence with a confidence of 0.5; ``scale``, positive, how fast confidence rises there."""

    threshold: float
    scale: float

    def confidence(self, evidence: float) -> float:
        """The confidence for some evidence, in [0, 1]."""
        exponent = (self.threshold - evidence) / self.scale
        return 1.0 / (1.0 + exp(max(-_MAX_EXPONENT, min(exponent, _MAX_EXPONENT))))


Calibrations: TypeAlias = tuple[tuple[str, Calibration], ...]
"""Calibrations by the name of the sources that give the evidence, see :func:`calibration_name`."""


@dataclass(frozen=True, slots=True)
class Confidences:
    """The confidence that the candidates answer a query.

    :param evidence: by row; empty without a calibration.
    :param calibration: ``None`` if there is none for these sources.
    :param answer: the confidence of the best candidate: whether the documents answer the query at all.
    """

    evidence: Floats
    calibration: Calibration | None
    answer: float | None

    @classmethod
    def of(cls, candidates: Candidates, sources: Sources, text: str, calibrations: Calibrations) -> Confidences:
        """The confidences of the candidates of a query.

        :param text: of the query.
        """
        used = evidence_sources(described(name, sources) for name in candidates.sources)
        name = calibration_name(used)
        calibration = next((each for calibrated, each in calibrations if calibrated == name), None)
        if calibration is None:
            return UNKNOWN
        column = evidence(candidates, used, text)
        return cls(column, calibration, calibration.confidence(float(column.max())) if len(column) else 0.0)

    def of_row(self, row: int) -> float | None:
        """The confidence of one candidate."""
        return None if self.calibration is None else self.calibration.confidence(float(self.evidence[row]))


UNKNOWN = Confidences(np.zeros(0), None, None)


def evidence_sources(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The sources that give evidence, in the order of their names."""
    return tuple(sorted((source for source in sources if source.evidence), key=lambda source: source.name))


def calibration_name(sources: Iterable[Source]) -> str:
    """The sources that give the evidence, in one word."""
    return "+".join(source.name for source in sources)


def evidence(candidates: Candidates, sources: Iterable[Source], text: str) -> Floats:
    """The evidence of each row: the sum over sources of its raw score, or a graph's entity coverage, times the weight.

    Scores that grow with the number of words are divided by it. A document that a source did not return counts with the
    source's lowest score.
    """
    words = max(len(text.split()), 1)
    total = np.zeros(len(candidates))
    for source in sources:
        scores = candidates.scores[source.name]
        if source.is_graph:
            total += source.evidence * candidates.entity_coverage[source.name]
        elif len(scores):
            column = np.full(len(candidates), scores.min())
            column[candidates.rows[source.name]] = scores
            total += column * (source.evidence if source.comparable_scores else source.evidence / words)
    return total
