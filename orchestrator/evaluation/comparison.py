"""How certain a mean is, and whether two runs differ.

Intervals: percentile bootstrap over queries (Efron 1979; Sakai: "Evaluating Evaluation Metrics Based on the Bootstrap",
SIGIR 2006). Paired test: randomisation by sign flips, two-sided (Smucker, Allan, Carterette: "A Comparison of
Statistical Significance Tests for Information Retrieval Evaluation", CIKM 2007).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, structs
from scipy import stats

from orchestrator.evaluation.measures import MAIN_MEASURE, ByQuery, mean

SIGNIFICANCE = 0.05
"""A difference is significant if its p is below this."""

_RESAMPLES = 10_000
_CONFIDENCE = 0.95


class Difference(Struct, frozen=True):
    """One run against another by one measure, over the same queries.

    ``interval`` is the 95 % interval of the difference. ``p`` is that of this comparison alone, ``corrected_p`` that of
    all comparisons that were made together: the probability that any of them seems as large by chance.
    """

    run: str
    against: str
    measure: str
    value: float
    baseline: float
    difference: float
    relative: float | None
    interval: tuple[float, float]
    p: float
    corrected_p: float
    wins: int
    losses: int
    ties: int


def interval(values: ByQuery) -> tuple[float, float]:
    """The 95 % interval of the mean. Deterministic."""
    sample = np.array(list(values.values()))
    if len(sample) < 2 or np.ptp(sample) == 0:
        middle = mean(values)
        return middle, middle
    resampled = stats.bootstrap(
        (sample,),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=_CONFIDENCE,
        method="percentile",
        batch=1_000,
        rng=np.random.default_rng(0),
    )
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)


def compare(
    run: str, against: str, run_values: ByQuery, baseline_values: ByQuery, measure: str = MAIN_MEASURE
) -> Difference:
    """Compare one run with another, over the queries that both have."""
    queries = sorted(run_values.keys() & baseline_values.keys())
    differences = {query: run_values[query] - baseline_values[query] for query in queries}
    values = np.array(list(differences.values()))
    baseline = mean({query: baseline_values[query] for query in queries})
    return Difference(
        run=run,
        against=against,
        measure=measure,
        value=mean({query: run_values[query] for query in queries}),
        baseline=baseline,
        difference=mean(differences),
        relative=mean(differences) / baseline if baseline else None,
        interval=interval(differences),
        p=(p := _randomization_test(values)),
        corrected_p=p,
        wins=int((values > 0).sum()),
        losses=int((values < 0).sum()),
        ties=int((values == 0).sum()),
    )


def corrected(differences: Sequence[Difference]) -> list[Difference]:
    """The same comparisons, each ``corrected_p`` for their number.

    By Holm: "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6, 1979. Two
    runs that are equal for every query cannot seem different, so they do not count (Tarone: "A Modified Bonferroni
    Method for Discrete Data", Biometrics 46, 1990).
    """
    largest, by_pair = 0.0, {}
    tested = sorted(filter(can_differ, differences), key=lambda difference: difference.p)
    for rank, each in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * each.p))
        by_pair[each.run, each.against] = largest
    return [structs.replace(each, corrected_p=by_pair.get((each.run, each.against), 1.0)) for each in differences]


def can_differ(difference: Difference) -> bool:
    """Whether two runs differ for any query."""
    return difference.wins + difference.losses > 0


def _randomization_test(differences: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The probability of a mean difference this large if the names of the two runs were exchanged at random."""
    if len(differences) < 2 or not differences.any():
        return 1.0
    test = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=_RESAMPLES - 1,
        batch=1_000,
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)
