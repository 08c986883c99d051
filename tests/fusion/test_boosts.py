from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.boosts import MIN_RECENCY_FACTOR, Boosted, boost, centrality, importance, recency, relationship
from fusion.columns import Candidates, Ranking
from fusion.rrf import RRF
from fusion.sums import Fused
from tests.fusion.helpers import SOURCES, column, listed


def fused(*scores: float) -> tuple[Candidates, Fused]:
    """Documents "1", "2", … with these fusion scores."""
    candidates = listed({}, *(str(number) for number in range(1, len(scores) + 1)))
    score = np.array(scores)
    return candidates, Fused(np.arange(len(scores)), score, score, {}, {})


def scored(candidates: Candidates, boosted: Boosted) -> dict[str, float]:
    """The final score of each document, best first."""
    return dict(zip(candidates.ids(boosted.rows), boosted.score.tolist(), strict=True))


@given(st.lists(st.floats(min_value=0.0, allow_infinity=False)))
def test_recency_is_that_of_the_c_library_to_the_last_digit(ages: list[float]) -> None:
    """The exponentials of numpy differ in the last digit between processors."""
    expected = [MIN_RECENCY_FACTOR + (1 - MIN_RECENCY_FACTOR) * exp(-0.023 * age) for age in ages]
    assert recency(np.array(ages, np.float64)).tolist() == expected


def test_a_score_is_the_fusion_score_times_its_factors() -> None:
    candidates, before = fused(0.9, 0.85)
    factors = {"centrality": column(candidates, {"2": 1.1}), "recency": column(candidates, {"2": 0.98})}
    boosted = boost(candidates, before, factors, SOURCES)
    assert list(scored(candidates, boosted).items()) == [("2", 0.85 * (1.1 * 0.98)), ("1", 0.9)]


def test_a_boost_that_applies_to_no_candidate_changes_nothing() -> None:
    candidates, before = fused(0.9, 0.85)
    assert scored(candidates, boost(candidates, before, {"recency": None}, SOURCES)) == {"1": 0.9, "2": 0.85}
    factors = {"centrality": column(candidates, {"2": 1.1}), "recency": None}
    assert scored(candidates, boost(candidates, before, factors, SOURCES)) == {"2": 0.85 * 1.1, "1": 0.9}


def test_equal_scores_stay_in_order() -> None:
    candidates, before = fused(0.5, 0.5, 0.5)
    assert list(scored(candidates, boost(candidates, before, {}, SOURCES))) == ["1", "2", "3"]
    factors = {"importance": column(candidates, {"3": 1.0})}
    assert list(scored(candidates, boost(candidates, before, factors, SOURCES))) == ["1", "2", "3"]


def test_scores_that_a_boost_makes_equal_are_ordered_by_keyword_rank_then_by_id() -> None:
    candidates = Candidates.of(
        [Ranking.of_ids("keyword", ("a", "k"), (2.0, 1.0)), Ranking.of_ids("vector", ("x", "v"), (0.2, 0.1))]
    )
    rows = {id_: row for row, id_ in enumerate(candidates.ids(np.arange(4)))}
    scores = np.array((0.8, 0.5, 0.4, 0.25))
    before = Fused(np.array([rows[id_] for id_ in ("a", "x", "v", "k")]), scores, scores, {}, {})
    factors = {"b": column(candidates, {"a": 0.5 / 0.8, "v": 0.5 / 0.4, "k": 0.5 / 0.25})}
    assert list(scored(candidates, boost(candidates, before, factors, SOURCES))) == ["a", "k", "v", "x"]


def test_only_the_rows_of_the_fused_order_are_returned() -> None:
    """Rows that :meth:`Fused.above` dropped do not come back, whatever their factor is."""
    candidates, before = fused(0.9, 0.5, 0.4)
    factors = {"importance": column(candidates, {"2": 1.9, "3": 9.0})}
    boosted = boost(candidates, before.above(0.5), factors, SOURCES)
    assert list(scored(candidates, boosted).items()) == [("2", 0.5 * 1.9), ("1", 0.9)]


def test_the_factors_follow_their_formulas() -> None:
    assert importance(np.array((0.0, 5, 10, 99))).tolist() == [1.0, 1 + 5 / 20, 1.5, 1.5]
    assert recency(np.array((0.0, 30, -3, 100_000))).tolist() == [1.0, 0.7 + 0.3 * exp(-0.023 * 30), 1.0, 0.7]
    assert centrality(np.array((1.0, 0.0)), 0.1).tolist() == [1 + 0.1 * 1.0, 1.0]
    assert relationship(np.array((0.5,)), 0.1).tolist() == [1 + 0.1 * 0.5]


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_value_outside_its_range_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match=f"centrality is {value}, allowed are 0 to 1"):
        centrality(np.array((0.5, value)), 0.1)
    with pytest.raises(ValueError, match=f"relationship is {value}, allowed are 0 to 1"):
        relationship(np.array((0.5, value)), 0.1)


fractions = st.lists(st.floats(0, 1), min_size=20, max_size=20)
IDS = tuple(str(number) for number in range(20))


@given(fractions, fractions)
def test_rank_20_never_overtakes_rank_1_by_centrality_and_relationship(
    centralities: list[float], relationships: list[float]
) -> None:
    """With k = 60, rank 20 has 61/80 of rank 1's score: 80/61 = 1.31 is more than the factors' 1.1 * 1.1 = 1.21."""
    candidates = Candidates.of([Ranking.of_ids("keyword", IDS, tuple(-float(n) for n in range(20)))])
    factors = {
        "centrality": centrality(np.array(centralities), 0.1),
        "relationship": relationship(np.array(relationships), 0.1),
    }
    order = list(scored(candidates, boost(candidates, RRF()(candidates, {}, SOURCES), factors, SOURCES)))
    assert order.index("0") < order.index("19")


@given(
    fractions,
    fractions,
    st.lists(st.floats(-1, 12), min_size=20, max_size=20),
    st.lists(st.floats(-9, 9_999), min_size=20, max_size=20),
)
def test_all_boosts_together_never_move_a_document_past_the_stated_bound(
    centralities: list[float], relationships: list[float], importances: list[float], ages: list[float]
) -> None:
    """Each product is from 0.7 to 1.5 * 1.1 * 1.1: more than 1.8 / 0.7 times another score always stays ahead of it."""
    bound = 1.5 * 1.1 * 1.1 / 0.7
    candidates, fused_before = fused(*(0.9**index for index in range(20)))
    values = (centralities, relationships, importances, ages)
    formulas = (lambda c: centrality(c, 0.1), lambda r: relationship(r, 0.1), importance, recency)
    factors = {
        str(number): formula(np.array(column_values))
        for number, (formula, column_values) in enumerate(zip(formulas, values, strict=True))
    }
    order = list(scored(candidates, boost(candidates, fused_before, factors, SOURCES)))
    before = dict(zip(candidates.ids(fused_before.rows), fused_before.score.tolist(), strict=True))
    for index, id_ in enumerate(order):
        assert all(before[later] <= before[id_] * bound * (1 + 1e-12) for later in order[index + 1 :])
