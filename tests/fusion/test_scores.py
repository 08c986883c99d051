from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.columns import Ranking
from fusion.scores import dbsf, relative_score, weighted_sum
from fusion.strategy import Strategy, parse
from tests.fusion.helpers import hits_of

KEYWORD = Ranking.of_ids("keyword", ("a", "b", "c"), (9.0, 5.0, 1.0))
VECTOR = Ranking.of_ids("vector", ("c", "a"), (0.8, -0.2))
ALL = (relative_score, dbsf, weighted_sum)


def raw(strategy: Strategy, *rankings: Ranking, **weights: float) -> dict[str, float]:
    return {hit.id: hit.raw for hit in hits_of(strategy, rankings, weights)}


def test_relative_scores_go_from_one_to_zero() -> None:
    assert raw(relative_score(), KEYWORD) == {"a": 1.0, "b": 0.5, "c": 0.0}
    assert raw(relative_score(), KEYWORD, VECTOR, vector=0.25) == {"a": 1.0, "b": 0.5, "c": 0.25}
    assert raw(relative_score(), Ranking.of_ids("keyword", ("a", "b"), (2.0, 2.0))) == {"a": 1.0, "b": 1.0}


def test_the_mean_of_a_distribution_is_one_half() -> None:
    scores = (9.0, 5.0, 1.0)
    low = fmean(scores) - 3 * pstdev(scores)
    expected = {id_: (score - low) / (6 * pstdev(scores)) for id_, score in zip("abc", scores, strict=True)}
    assert raw(dbsf(), KEYWORD) == pytest.approx(expected)
    assert expected["b"] == pytest.approx(0.5)
    assert raw(dbsf(), Ranking.of_ids("vector", ("a",), (0.7,))) == {"a": 0.5}
    outlier = Ranking.of_ids("keyword", tuple(map(str, range(30))), (1_000.0, *[1.0] * 29))
    assert raw(dbsf(), outlier)["0"] == 1.0


def test_a_weighted_sum_takes_cosines_as_they_are_and_positions_of_other_sources() -> None:
    assert raw(weighted_sum(), KEYWORD, VECTOR, keyword=3.0) == pytest.approx({"a": 3.0, "b": 2.0, "c": 1.0 + 0.8})


@pytest.mark.parametrize("strategy", ["relative_score()", "dbsf()", "weighted_sum()"])
def test_each_strategy_is_parsed_by_its_name(strategy: str) -> None:
    assert str(parse(strategy)) == strategy


falling_scores = st.lists(st.floats(-1, 1, allow_subnormal=False), max_size=8).map(
    lambda scores: sorted(scores, reverse=True)
)


@pytest.mark.parametrize("kind", ALL)
@given(falling_scores, falling_scores)
def test_scores_are_bounded_and_the_order_of_the_rankings_never_matters(
    kind: Callable[[], Strategy], one: list[float], other: list[float]
) -> None:
    rankings = [
        Ranking.of_ids(source, tuple(f"{index * step % 11}" for index in range(len(scores))), tuple(scores))
        for source, step, scores in (("vector", 3, one), ("graph", 5, other))
    ]
    fused = hits_of(kind(), rankings, {"graph": 0.5})
    assert fused == hits_of(kind(), rankings[::-1], {"graph": 0.5})
    assert all(0 <= hit.fusion_score <= 1 for hit in fused)
    assert [hit.raw for hit in fused] == sorted((hit.raw for hit in fused), reverse=True)
    assert {hit.id for hit in fused} == {id_ for ranking in rankings for id_ in ranking.ids}


@pytest.mark.parametrize("kind", ALL)
def test_no_rankings_and_empty_rankings_give_no_hits(kind: Callable[[], Strategy]) -> None:
    assert hits_of(kind(), []) == []
    assert hits_of(kind(), [Ranking.of_ids("keyword", (), ())]) == []
