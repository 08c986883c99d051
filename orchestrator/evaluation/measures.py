"""Measures of a run, query by query, by ``ir_measures``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import ir_measures
import numpy as np

from orchestrator.evaluation.judgments import Judgments
from orchestrator.evaluation.trec import Run

MEASURES: Mapping[str, ir_measures.Measure] = {
    "nDCG@10": ir_measures.nDCG @ 10,
    "MRR@10": ir_measures.RR @ 10,
    **{f"R@{depth}": ir_measures.R @ depth for depth in (2, 5, 10, 20, 100)},
}
"""The measures by the name that is printed."""

MAIN_MEASURE = "nDCG@10"
"""The measure that runs are compared by."""

ByQuery: TypeAlias = Mapping[str, float]
ByRun: TypeAlias = Mapping[str, Mapping[str, ByQuery]]
"""Values by run, measure and query."""


def measure_run(judgments: Judgments, run: Run) -> dict[str, dict[str, float]]:
    """The values by measure and judged query; 0 for a query that the run does not have."""
    qrels = [
        ir_measures.Qrel(query, document, relevance)
        for query, judged in judgments.items()
        for document, relevance in judged.items()
    ]
    scored = [ir_measures.ScoredDoc(query, document, score) for query, hits in run.items() for document, score in hits]
    names = {measure: name for name, measure in MEASURES.items()}
    values: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for metric in ir_measures.iter_calc(list(MEASURES.values()), qrels, scored):
        values[names[metric.measure]][metric.query_id] = float(metric.value)
    return {name: dict(sorted(by_query.items())) for name, by_query in values.items()}


def mean(values: ByQuery) -> float:
    """The mean over the queries."""
    return float(np.mean(list(values.values()))) if values else 0.0
