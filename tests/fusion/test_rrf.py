from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import RRF, Contribution, Ranking, merged

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
    fused = RRF(60)([ranking("keyword", "a", "b", "c"), ranking("vector", "c", "a")], {}).hits()

    assert [hit.id for hit in fused] == ["a", "c", "b"]
    assert fused[0].raw == 1 / (60 + 1) + 1 / (60 + 2)
    assert fused[1].raw == 1 / (60 + 3) + 1 / (60 + 1)
    assert fused[2].raw == 1 / (60 + 2)


def test_a_weight_multiplies_what_its_source_gives() -> None:
    fused = RRF(60)([ranking("keyword", "a"), ranking("vector", "b", "a")], {"vector": 3.0}).hits()

    assert [(hit.id, hit.raw) for hit in fused] == [("a", 1 / 61 + 3 / 62), ("b", 3 / 61)]


def test_every_source_that_answered_is_in_the_provenance() -> None:
    first = RRF(60)([ranking("keyword", "a", "b"), ranking("vector")], {"keyword": 2.0}).hits()[0]

    assert first.sources == {"keyword": Contribution(1, 1.0, 2.0, 2 / 61), "vector": None}


def test_first_everywhere_is_exactly_one() -> None:
    for k, count in itertools.product((1, 7, 60, 9_999), (1, 2, 3)):
        asked = [ranking(source, "a", "b") for source in ("graph", "keyword", "vector")[:count]]
        assert RRF(k)(asked, {"graph": 0.1, "keyword": 0.7, "vector": 3.3}).hits()[0].fusion_score == 1.0


def test_ties_go_to_the_better_keyword_rank_and_then_to_the_smaller_id() -> None:
    tied = [ranking("keyword", "b", "a"), ranking("vector", "a", "b")]
    assert [hit.id for hit in RRF()(tied, {}).hits()] == ["b", "a"]

    strangers = [ranking("graph", "z"), ranking("vector", "y")]
    assert [hit.id for hit in RRF()(strangers, {}).hits()] == ["y", "z"]


def test_three_that_tie_go_by_the_same_rule() -> None:
    asked = [ranking("graph", "c", "b"), ranking("vector", "b", "c"), ranking("keyword", "a")]
    fused = RRF()(asked, {}).hits()
    assert [hit.id for hit in fused] == ["b", "c", "a"]
    assert fused[0].raw == fused[1].raw == 1 / 61 + 1 / 62


def test_the_parts_of_a_source_are_lists_beside_each_other() -> None:
    """Ranks within the collections: the first of each gets 1/61, whatever its score."""
    both = merged([ranking("keyword", "a", "b"), Ranking("keyword", ("x", "y"), (0.95, 0.1))])
    assert {hit.id: hit.raw for hit in RRF()([both], {}).hits()} == {
        "a": 1 / 61, "x": 1 / 61, "b": 1 / 62, "y": 1 / 62,
    }  # fmt: skip


@given(rankings(), weights)
def test_the_order_of_the_sources_never_matters(asked: list[Ranking], weighed: dict[str, float]) -> None:
    expected = RRF()(asked, weighed).hits()
    for order in itertools.permutations(asked):
        assert RRF()(order, weighed).hits() == expected


@given(rankings(), weights, columns)
def test_one_more_source_never_lowers_a_sum(asked: list[Ranking], weighed: dict[str, float], more: list[str]) -> None:
    before = {hit.id: hit.raw for hit in RRF()(asked, weighed).hits()}
    extra = Ranking("zzz", tuple(more), tuple(0.0 for _ in more))
    after = {hit.id: hit.raw for hit in RRF()([*asked, extra], weighed).hits()}
    assert all(after[id_] >= raw for id_, raw in before.items())


@given(rankings(), weights)
def test_scores_are_between_0_and_1_and_fall(asked: list[Ranking], weighed: dict[str, float]) -> None:
    fused = RRF()(asked, weighed).hits()
    assert all(0 <= hit.fusion_score <= 1 for hit in fused)
    assert all(one.raw >= other.raw for one, other in itertools.pairwise(fused))
    assert {hit.id for hit in fused} == {id_ for each in asked for id_ in each.ids}


@given(rankings(), st.data())
def test_what_a_source_gave_is_told_for_the_hits_that_are_asked_for(asked: list[Ranking], data: st.DataObject) -> None:
    fused = RRF()(asked, {})
    every = {hit.id: hit for hit in fused.hits()}
    wanted = data.draw(st.permutations(fused.ids))[:3]
    assert fused.hits(wanted) == [every[id_] for id_ in wanted]
    for hit in every.values():
        assert hit.raw == pytest.approx(sum(share.contribution for share in hit.sources.values() if share))


def test_weights_of_nothing_give_scores_of_nothing() -> None:
    (hit,) = RRF()([ranking("vector", "a")], {"vector": 0.0}).hits()
    assert (hit.raw, hit.fusion_score) == (0.0, 0.0)


@pytest.mark.parametrize("k", [0, -1, 10_001])
def test_a_k_that_is_not_allowed_is_named(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is {k}, allowed are 1 to 10000"):
        RRF(k)
