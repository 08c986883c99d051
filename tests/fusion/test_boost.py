from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import RRF, FusedHit, Ranking, boost, centrality


def fused(*scores: float) -> list[FusedHit]:
    return [FusedHit(str(place), score, score, {}) for place, score in enumerate(scores, start=1)]


def test_a_score_is_the_fusion_score_times_its_factors() -> None:
    first, second = boost(fused(0.9, 0.85), {"centrality": {"2": 1.1}, "other": {"2": 0.98}})
    assert (first.fused.id, first.factors, first.score) == ("2", {"centrality": 1.1, "other": 0.98}, 0.85 * 1.1 * 0.98)
    assert (second.fused.id, second.factors, second.score) == ("1", {}, 0.9)


def test_what_is_equal_stays_in_order() -> None:
    assert [hit.fused.id for hit in boost(fused(0.5, 0.5, 0.5), {})] == ["1", "2", "3"]


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_centrality_beyond_its_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="allowed are 0 to 1"):
        centrality(value, 0.1)


@given(st.lists(st.floats(0, 1), min_size=20, max_size=20))
def test_rank_20_never_overtakes_rank_1_of_a_source_alone(values: list[float]) -> None:
    """With k = 60, rank 20 has 61/80 of rank 1's score: more than any factor up to 1.1 makes good."""
    ids = tuple(str(n) for n in range(20))
    hits = RRF()([Ranking("keyword", ids, tuple(-float(n) for n in range(20)))], {}, 20)
    factors = {"centrality": {id_: centrality(value, 0.1) for id_, value in zip(ids, values, strict=True)}}
    order = [hit.fused.id for hit in boost(hits, factors)]
    assert order.index("0") < order.index("19")
