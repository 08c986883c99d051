"""Evidence and confidence: what raw scores say about a query, however it is fused."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.model.sources import GRAPH, KEYWORD, SOURCES, VECTOR
from fusion.columns import Candidates, Ranking
from fusion.confidence import Calibration, Confidences, calibration_name, evidence, evidence_sources
from fusion.source import Source

BY_NAME = {source.name: source for source in SOURCES}
vector = Ranking.of_ids("vector", ("a", "b"), (0.8, 0.2))
keyword = Ranking.of_ids("keyword", ("c", "a"), (12.0, 6.0))
graph = Ranking.of_ids("graph", ("d",), (0.5,), 0.4)
ALL = Candidates.of([vector, keyword, graph])


def by_id(candidates: Candidates, *sources: Source, text: str = "three words here") -> dict[str, float]:
    column = evidence(candidates, sources, text)
    return dict(zip(candidates.ids(np.arange(len(candidates))), column.tolist(), strict=True))


def test_evidence_is_the_sum_of_cosine_bm25_per_word_and_coverage() -> None:
    """A document that a source did not return has the source's lowest score; the coverage is that of the query."""
    found = by_id(ALL, VECTOR, KEYWORD, GRAPH)
    per_word, coverage = KEYWORD.evidence / 3, GRAPH.evidence * 0.4
    assert found == pytest.approx(
        {
            "a": 0.8 + 6 * per_word + coverage,
            "b": 0.2 + 6 * per_word + coverage,
            "c": 0.2 + 12 * per_word + coverage,
            "d": 0.2 + 6 * per_word + coverage,
        }
    )


def test_a_source_that_found_nothing_gives_no_evidence() -> None:
    candidates = Candidates.of([vector, Ranking.empty("keyword"), Ranking.empty("graph")])
    assert by_id(candidates, VECTOR, KEYWORD, GRAPH) == {"a": 0.8, "b": 0.2}


def test_a_calibration_belongs_to_the_sources_that_answered() -> None:
    calibrations = ((calibration_name([KEYWORD, VECTOR]), Calibration(0.5, 0.1)), ("vector", Calibration(0.8, 0.1)))
    alone = Confidences.of(Candidates.of([vector]), BY_NAME, "a query", calibrations)
    assert alone.answer == 0.5
    both = Confidences.of(Candidates.of([vector, keyword]), BY_NAME, "three words here", calibrations)
    assert both.answer == pytest.approx(1 / (1 + exp((0.5 - 0.8 - 2 * KEYWORD.evidence) / 0.1)))
    assert Confidences.of(ALL, BY_NAME, "a query", calibrations).answer is None
    assert Confidences.of(ALL, BY_NAME, "a query", calibrations).of_row(0) is None


def test_without_any_candidate_the_confidence_is_0() -> None:
    nothing = Candidates.of([Ranking.empty("vector")])
    assert Confidences.of(nothing, BY_NAME, "a query", (("vector", Calibration(0.5, 0.1)),)).answer == 0.0


def test_sources_without_evidence_do_not_count() -> None:
    assert evidence_sources([Source("titles"), VECTOR, KEYWORD]) == (KEYWORD, VECTOR)


finite = st.floats(-1e9, 1e9)


@given(finite, finite, finite, st.floats(1e-6, 1e6))
def test_confidence_is_in_0_to_1_rises_with_evidence_and_is_one_half_at_the_threshold(
    low: float, high: float, threshold: float, scale: float
) -> None:
    calibration = Calibration(threshold, scale)
    low, high = sorted((low, high))
    assert 0 <= calibration.confidence(low) <= calibration.confidence(high) <= 1
    assert calibration.confidence(threshold) == 0.5
