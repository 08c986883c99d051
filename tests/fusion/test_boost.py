from __future__ import annotations

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import RRF, Fused, Ranking, boost, centrality, importance, recency, relationship


def fused(*scores: float) -> Fused:
    ids = tuple(str(place) for place in range(1, len(scores) + 1))
    return Fused(ids, scores, scores, (), {}, {})


def test_a_score_is_the_fusion_score_times_its_factors() -> None:
    boosted = boost(fused(0.9, 0.85), {"centrality": {"2": 1.1}, "recency": {"2": 0.98}})
    assert boosted.ids == ("2", "1")
    assert [boosted.score("2", 0.85), boosted.score("1", 0.9)] == [0.85 * (1.1 * 0.98), 0.9]
    assert boosted.of("2") == {"centrality": 1.1, "recency": 0.98}
    assert boosted.of("1") == {"centrality": 1.0, "recency": 1.0}


def test_what_is_equal_stays_in_order() -> None:
    assert boost(fused(0.5, 0.5, 0.5), {}).ids == ("1", "2", "3")
    assert boost(fused(0.5, 0.5, 0.5), {"importance": {"3": 1.0}}).ids == ("1", "2", "3")


def test_what_a_boost_makes_equal_goes_by_keyword_rank_then_id() -> None:
    rankings = (Ranking("keyword", ("a", "k"), (2.0, 1.0)),)
    scores = (0.8, 0.5, 0.4, 0.25)
    hits = Fused(("a", "x", "v", "k"), scores, scores, rankings, {}, {})
    assert boost(hits, {"b": {"a": 0.5 / 0.8, "v": 0.5 / 0.4, "k": 0.5 / 0.25}}).ids == ("a", "k", "v", "x")


def test_the_factors_are_those_of_the_rules() -> None:
    assert [importance(value) for value in (0, 5, 10, 99)] == [1.0, 1 + 5 / 20, 1.5, 1.5]
    assert [recency(days) for days in (0, 30, -3)] == [1.0, 0.7 + 0.3 * exp(-0.023 * 30), 1.0]
    assert recency(100_000) == 0.7
    assert [centrality(1.0, 0.1), relationship(0.5, 0.1)] == [1 + 0.1 * 1.0, 1 + 0.1 * 0.5]


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_share_beyond_its_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"centrality is .*, allowed are 0 to 1"):
        centrality(value, 0.1)
    with pytest.raises(ValueError, match=r"relationship is .*, allowed are 0 to 1"):
        relationship(value, 0.1)


shares = st.lists(st.floats(0, 1), min_size=20, max_size=20)
IDS = tuple(str(n) for n in range(20))


@given(shares, shares)
def test_rank_20_never_overtakes_rank_1_by_centrality_and_relationship(central: list[float], near: list[float]) -> None:
    """With k = 60, rank 20 has 61/80 of rank 1's score: 80/61 = 1.31 is more than 1.1 * 1.1 makes good."""
    hits = RRF()([Ranking("keyword", IDS, tuple(-float(n) for n in range(20)))], {})
    factors = {
        "centrality": {id_: centrality(value, 0.1) for id_, value in zip(IDS, central, strict=True)},
        "relationship": {id_: relationship(value, 0.1) for id_, value in zip(IDS, near, strict=True)},
    }
    order = boost(hits, factors).ids
    assert order.index("0") < order.index("19")


@given(
    shares, shares, st.lists(st.floats(-1, 12), min_size=20, max_size=20), st.lists(st.floats(-9, 9_999), min_size=20)
)
def test_no_boosts_together_carry_a_document_past_the_stated_bound(
    central: list[float], near: list[float], important: list[float], ages: list[float]
) -> None:
    """Each product is in 0.7 to 1.5 * 1.1 * 1.1: who has more than 1.8 / 0.7 times another's score stays before it."""
    bound = 1.5 * 1.1 * 1.1 / 0.7
    hits = fused(*(0.9**place for place in range(20)))
    columns = (central, near, important, ages)
    made = (lambda c: centrality(c, 0.1), lambda r: relationship(r, 0.1), importance, recency)
    factors = {
        str(number): {id_: factor(value) for id_, value in zip(hits.ids, column, strict=False)}
        for number, (factor, column) in enumerate(zip(made, columns, strict=True))
    }
    boosted = boost(hits, factors)
    before = dict(zip(hits.ids, hits.scores, strict=True))
    for place, id_ in enumerate(boosted.ids):
        assert all(before[later] <= before[id_] * bound * (1 + 1e-12) for later in boosted.ids[place + 1 :])
