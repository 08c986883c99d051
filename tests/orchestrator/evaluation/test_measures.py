from __future__ import annotations

from math import log2

import pytest

from orchestrator.evaluation.measures import mean, measure_run

JUDGMENTS = {"q": {"a": 2, "b": 1, "c": 0}, "r": {"x": 1}}
RUN = {"q": [("c", 3.0), ("a", 2.0), ("z", 1.5), ("b", 1.0)]}


def test_measures_by_hand() -> None:
    """Gains 0, 2, 0, 1 against the ideal 2, 1; a query without results counts 0."""
    values = measure_run(JUDGMENTS, RUN)
    ideal = 2 / log2(2) + 1 / log2(3)
    assert values["nDCG@10"] == pytest.approx({"q": (2 / log2(3) + 1 / log2(5)) / ideal, "r": 0.0})
    assert values["MRR@10"] == {"q": 0.5, "r": 0.0}
    assert values["R@2"] == {"q": 0.5, "r": 0.0}
    assert values["R@5"] == {"q": 1.0, "r": 0.0}


def test_the_mean_counts_every_query_and_is_zero_without_queries() -> None:
    assert mean({"q": 0.5, "r": 0.0, "s": 1.0}) == (0.5 + 0.0 + 1.0) / 3
    assert mean({}) == 0.0
