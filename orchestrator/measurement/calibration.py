"""The calibration of confidence of each scope: how it is measured, stored and used.

It needs no judgments: the evidence of queries that the documents cannot answer is compared with that of queries that
were generated from the documents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from pathlib import Path

import msgspec
import numpy as np

from adapters import Record, Scope, Sensitivity, Viewer
from adapters.model.filter import Filter
from adapters.ports import DocumentReader, Retriever, SourceQuery
from adapters.ports.encoders import Vector
from fusion.columns import Candidates, Ranking
from fusion.confidence import Calibration, Calibrations, calibration_name, evidence, evidence_sources
from fusion.source import Source
from orchestrator.auth.visibility import access_filter
from orchestrator.measurement.scope_file import Measurements, ScopeFile
from orchestrator.measurement.scope_sample import MIN_DOCUMENTS, sample_by_access
from orchestrator.measurement.unanswerable import unanswerable_queries
from orchestrator.schema.search import EncoderName

CALIBRATION_FILE = "confidence.json"
"""Name of the file in the data folder."""
_ANSWERABLE = 100
"""Number of queries that are generated from the documents of a scope."""
_DEPTH = 50
_REJECTED = 0.925
"""The fraction of the queries that cannot be answered whose confidence is below 0.5."""
_TYPICAL_CONFIDENCE = 0.9
"""Confidence of the median of the queries that were generated from the documents."""
_MIN_SCALE = 0.01
_USUAL = 0.25
"""Weight of the usual evidence in the threshold, where scores mean the same in every corpus: users have other
queries than the measurement. docs/decisions/0022-confidence.md has the measurements."""


class ScopeCalibration(msgspec.Struct, frozen=True):
    """The measurement of what may be seen of one scope at one clearance: by encoder of the query, by the sources that
    gave the evidence."""

    tenant: str
    environment: str
    clearance: Sensitivity
    by_encoder: dict[EncoderName, Calibrations]


class ConfidenceCalibrations(ScopeFile[ScopeCalibration]):
    """The measurements at ``path``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ScopeCalibration)

    def calibrations(self, scope: Scope, clearance: Sensitivity, encoder: EncoderName) -> Calibrations:
        """The calibrations of a scope for queries of an encoder; empty if it was not measured."""
        measured = self.of_scope(scope, clearance)
        return () if measured is None else measured.by_encoder.get(encoder, ())

    def lacks(self, encoders: Iterable[EncoderName]) -> bool:
        """Whether a measured scope lacks the calibrations of one of the encoders."""
        return any(not scope.by_encoder.keys() >= set(encoders) for scope in self.scopes)


@dataclass(frozen=True, slots=True)
class CalibrationMeasurement:
    """Measures the calibrations of every scope.

    :param pseudo_queries: generates queries from titles, texts and a maximum number.
    :param sources: each source and its adapter.
    :param encode: the vector of a text by an encoder.
    :param encoders: names of the encoders that queries may be encoded by.
    """

    documents: DocumentReader
    pseudo_queries: Callable[[Sequence[str], Sequence[str], int], list[str]]
    encode: Callable[[str, EncoderName], Awaitable[Vector]]
    sources: Sequence[tuple[Source, Retriever]]
    encoders: Sequence[EncoderName]

    async def run(self, generation: int) -> Measurements[ScopeCalibration]:
        """Measure every scope that has enough documents in a sample.

        :param generation: of the index.
        :raises AdapterError: if a source is unavailable.
        """
        scopes = [
            ScopeCalibration(
                scope.tenant,
                scope.environment,
                clearance,
                {
                    encoder: await self._calibrate(scope, Viewer(clearance), sample.records, encoder)
                    for encoder in self.encoders
                },
            )
            for (scope, clearance), sample in (await sample_by_access(self.documents)).items()
        ]
        return Measurements(generation, scopes)

    async def _calibrate(
        self, scope: Scope, viewer: Viewer, records: Sequence[Record], encoder: EncoderName
    ) -> Calibrations:
        visible = access_filter(scope, viewer)
        titles = [record.document.title for record in records]
        answerable = self.pseudo_queries(titles, [record.document.text for record in records], _ANSWERABLE)
        groups = _groups([source for source, _ in self.sources])
        unanswerable = [await self._evidence(scope, visible, text, encoder, groups) for text in unanswerable_queries()]
        typical = [await self._evidence(scope, visible, text, encoder, groups) for text in answerable]
        if not typical:
            return ()
        calibrations = []
        for group in groups:
            name = calibration_name(group)
            threshold = float(np.quantile([each[name] for each in unanswerable], _REJECTED))
            if any(source.comparable_scores for source in group):
                threshold += _USUAL * (sum(source.usual_evidence for source in group) - threshold)
            calibrations.append((name, _calibration(threshold, [each[name] for each in typical])))
        return tuple(calibrations)

    async def _evidence(
        self, scope: Scope, visible: Filter, text: str, encoder: EncoderName, groups: Sequence[Sequence[Source]]
    ) -> dict[str, float]:
        """The evidence of the best document, by the sources that give it."""
        query = SourceQuery(text, _DEPTH, scope, visible, visible)
        rankings: dict[str, Ranking] = {}
        for source, retriever in self.sources:
            needs_vector = "query_vector" in source.needs
            vector = await self.encode(text, encoder) if needs_vector else None
            rankings[source.name] = await retriever.search(msgspec.structs.replace(query, vector=vector))
        best = {}
        for used in groups:
            candidates = Candidates.of([rankings[source.name] for source in used])
            best[calibration_name(used)] = float(evidence(candidates, used, text).max()) if len(candidates) else 0.0
        return best


def why_unmeasured(encodes_texts: bool) -> str:
    """Why a scope has no calibration.

    :param encodes_texts: whether queries can be encoded.
    """
    if not encodes_texts:
        return "it cannot be measured, because nothing encodes queries"
    return f"not measured yet: run `trivium tidy`, with at least {MIN_DOCUMENTS} documents"


def _groups(sources: Sequence[Source]) -> list[tuple[Source, ...]]:
    """The groups of sources that give the evidence, for every combination of sources that are available."""
    groups = {evidence_sources(some) for count in range(1, len(sources) + 1) for some in combinations(sources, count)}
    return sorted((group for group in groups if group), key=calibration_name)


def _calibration(threshold: float, typical: Sequence[float]) -> Calibration:
    slope = log(_TYPICAL_CONFIDENCE / (1 - _TYPICAL_CONFIDENCE))
    scale = max((float(np.median(typical)) - threshold) / slope, _MIN_SCALE)
    return Calibration(round(threshold, 6), round(scale, 6))
