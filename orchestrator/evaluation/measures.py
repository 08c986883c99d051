"""What a run is worth, query by query, by ir_measures; and what a difference between two runs is worth.

Intervals: percentile bootstrap over queries (Efron 1979; Sakai: "Evaluating Evaluation Metrics Based on the Bootstrap",
SIGIR 2006). Paired test: randomisation by sign flips, two-sided (Smucker, Allan, Carterette: "A Comparison of
Statistical Significance Tests for Information Retrieval Evaluation", CIKM 2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import ir_measures
import numpy as np
from msgspec import Struct
from scipy import stats

from orchestrator.evaluation.dataset import Judgments
from orchestrator.evaluation.trec import Run

MEASURES: Mapping[str, ir_measures.Measure] = {
    "nDCG@10": ir_measures.nDCG @ 10,
    "MRR@10": ir_measures.RR @ 10,
    **{f"R@{depth}": ir_measures.R @ depth for depth in (2, 5, 10, 100)},
}
"""By the name that we print."""

MAIN = "nDCG@10"
"""The measure that runs are compared by."""

_RESAMPLES = 10_000
_CONFIDENCE = 0.95

ByQuery: TypeAlias = Mapping[str, float]


class Difference(Struct, frozen=True):
    """One run against another by one measure, over the same queries. ``interval`` is of the difference, at 95 %."""

    run: str
    against: str
    measure: str
    value: float
    baseline: float
    difference: float
    relative: float | None
    interval: tuple[float, float]
    p: float
    wins: int
    losses: int
    ties: int


def judge(judgments: Judgments, run: Run) -> dict[str, dict[str, float]]:
    """By measure, by judged query; a query that the run does not have counts 0."""
    qrels = [
        ir_measures.Qrel(query, document, score)
        for query, judged in judgments.items()
        for document, score in judged.items()
    ]
    scored = [ir_measures.ScoredDoc(query, document, score) for query, hits in run.items() for document, score in hits]
    names = {measure: name for name, measure in MEASURES.items()}
    found: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for each in ir_measures.iter_calc(list(MEASURES.values()), qrels, scored):
        found[names[each.measure]][each.query_id] = float(each.value)
    return {name: dict(sorted(values.items())) for name, values in found.items()}


def mean(values: ByQuery) -> float:
    """Over the queries."""
    return float(np.mean(list(values.values()))) if values else 0.0


def interval(values: ByQuery) -> tuple[float, float]:
    """Of the mean, at 95 %; the same every time."""
    sample = np.array(list(values.values()))
    if len(sample) < 2 or np.ptp(sample) == 0:
        middle = mean(values)
        return middle, middle
    found = stats.bootstrap(
        (sample,),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=_CONFIDENCE,
        method="percentile",
        batch=1_000,
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def compare(run: str, against: str, ours: ByQuery, theirs: ByQuery, measure: str = MAIN) -> Difference:
    """One run against another, over the queries that both were judged on."""
    queries = sorted(ours.keys() & theirs.keys())
    differences = {query: ours[query] - theirs[query] for query in queries}
    values = np.array(list(differences.values()))
    baseline = mean({query: theirs[query] for query in queries})
    return Difference(
        run=run,
        against=against,
        measure=measure,
        value=mean({query: ours[query] for query in queries}),
        baseline=baseline,
        difference=mean(differences),
        relative=mean(differences) / baseline if baseline else None,
        interval=interval(differences),
        p=_randomised(values),
        wins=int((values > 0).sum()),
        losses=int((values < 0).sum()),
        ties=int((values == 0).sum()),
    )


def _randomised(differences: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """How probable a mean difference as large as this is, were the two runs' names exchanged by chance."""
    if len(differences) < 2 or not differences.any():
        return 1.0
    found = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=_RESAMPLES - 1,
        batch=1_000,
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
