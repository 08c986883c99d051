from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import RRF, Contribution, Ranking

ids = st.text("abcdefghij", min_size=1, max_size=2)
columns = st.lists(ids, unique=True, max_size=12)


@st.composite
def rankings(draw: st.DrawFn) -> list[Ranking]:
    sources = draw(st.lists(st.sampled_from(["vector", "graph", "keyword"]), unique=True, min_size=1))
    return [
        Ranking(source, tuple(found), tuple(float(-place) for place in range(len(found))))
        for source in sources
        for found in [draw(columns)]
    ]


weights = st.dictionaries(
    st.sampled_from(["vector", "graph", "keyword"]), st.floats(0, 10, allow_subnormal=False), max_size=3
)


def ranking(source: str, *found: str) -> Ranking:
    return Ranking(source, found, tuple(1.0 - place / 10 for place in range(len(found))))


def test_the_sum_is_that_of_the_paper() -> None:
    fused = RRF(60)([ranking("keyword", "a", "b", "c"), ranking("vector", "c", "a")], {}, 10)

    assert [hit.id for hit in fused] == ["a", "c", "b"]
    assert fused[0].raw == 1 / (60 + 1) + 1 / (60 + 2)
    assert fused[1].raw == 1 / (60 + 3) + 1 / (60 + 1)
    assert fused[2].raw == 1 / (60 + 2)


def test_a_weight_multiplies_what_its_source_gives() -> None:
    fused = RRF(60)([ranking("keyword", "a"), ranking("vector", "b", "a")], {"vector": 3.0}, 10)

    assert [(hit.id, hit.raw) for hit in fused] == [("a", 1 / 61 + 3 / 62), ("b", 3 / 61)]


def test_every_source_that_answered_is_in_the_provenance() -> None:
    (first,) = RRF(60)([ranking("keyword", "a", "b"), ranking("vector")], {"keyword": 2.0}, 1)

    assert first.sources == {"keyword": Contribution(1, 1.0, 2.0, 2 / 61), "vector": None}


def test_first_everywhere_is_exactly_one() -> None:
    for k, count in itertools.product((1, 7, 60, 9_999), (1, 2, 3)):
        asked = [ranking(source, "a", "b") for source in ("graph", "keyword", "vector")[:count]]
        assert RRF(k)(asked, {"graph": 0.1, "keyword": 0.7, "vector": 3.3}, 10)[0].fusion_score == 1.0


def test_ties_go_to_the_better_keyword_rank_and_then_to_the_smaller_id() -> None:
    tied = [ranking("keyword", "b", "a"), ranking("vector", "a", "b")]
    assert [hit.id for hit in RRF()(tied, {}, 10)] == ["b", "a"]

    strangers = [ranking("graph", "z"), ranking("vector", "y")]
    assert [hit.id for hit in RRF()(strangers, {}, 10)] == ["y", "z"]


def test_a_tie_at_the_end_of_the_window_is_broken_by_the_same_rule() -> None:
    asked = [ranking("graph", "c", "b"), ranking("vector", "b", "c"), ranking("keyword", "a")]
    for limit in (1, 2, 3):
        assert [hit.id for hit in RRF()(asked, {}, limit)] == [hit.id for hit in RRF()(asked, {}, 10)][:limit]


@given(rankings(), weights)
def test_the_order_of_the_sources_never_matters(asked: list[Ranking], weighed: dict[str, float]) -> None:
    expected = RRF()(asked, weighed, 10)
    for order in itertools.permutations(asked):
        assert RRF()(order, weighed, 10) == expected


@given(rankings(), weights, columns)
def test_one_more_source_never_lowers_a_sum(asked: list[Ranking], weighed: dict[str, float], more: list[str]) -> None:
    before = {hit.id: hit.raw for hit in RRF()(asked, weighed, 100)}
    extra = Ranking("zzz", tuple(more), tuple(0.0 for _ in more))
    after = {hit.id: hit.raw for hit in RRF()([*asked, extra], weighed, 100)}
    assert all(after[id_] >= raw for id_, raw in before.items())


@given(rankings(), weights)
def test_scores_are_between_0_and_1_and_fall(asked: list[Ranking], weighed: dict[str, float]) -> None:
    fused = RRF()(asked, weighed, 100)
    assert all(0 <= hit.fusion_score <= 1 for hit in fused)
    assert all(one.raw >= other.raw for one, other in itertools.pairwise(fused))
    assert {hit.id for hit in fused} == {id_ for each in asked for id_ in each.ids}


@given(rankings(), st.integers(0, 40))
def test_a_smaller_window_is_the_beginning_of_a_larger_one(asked: list[Ranking], limit: int) -> None:
    assert RRF()(asked, {}, limit) == RRF()(asked, {}, 100)[:limit]


def test_weights_of_nothing_give_scores_of_nothing() -> None:
    (hit,) = RRF()([ranking("vector", "a")], {"vector": 0.0}, 10)
    assert (hit.raw, hit.fusion_score) == (0.0, 0.0)


@pytest.mark.parametrize("k", [0, -1, 10_001])
def test_a_k_that_is_not_allowed_is_named(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is {k}, allowed are 1 to 10000"):
        RRF(k)
