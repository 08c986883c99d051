from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.collections import merge_collections
from fusion.columns import Candidates, Ranking
from fusion.provenance import fused_hits
from fusion.rrf import RRF
from fusion.strategy import parse
from fusion.values import Contribution
from tests.fusion.helpers import SOURCES, hits_of

ids = st.text("abcdefghij", min_size=1, max_size=2)
id_lists = st.lists(ids, unique=True, max_size=12)


@st.composite
def rankings(draw: st.DrawFn) -> list[Ranking]:
    sources = draw(st.lists(st.sampled_from(["vector", "graph", "keyword"]), unique=True, min_size=1))
    return [
        Ranking.of_ids(source, column, [float(-index) for index in range(len(column))])
        for source in sources
        for column in [draw(id_lists)]
    ]


weights = st.dictionaries(
    st.sampled_from(["vector", "graph", "keyword"]), st.floats(0, 10, allow_subnormal=False), max_size=3
)


def ranking(source: str, *column: str) -> Ranking:
    return Ranking.of_ids(source, column, [1.0 - index / 10 for index in range(len(column))])


def test_the_sum_is_that_of_the_paper() -> None:
    fused = hits_of(RRF(60), [ranking("keyword", "a", "b", "c"), ranking("vector", "c", "a")])

    assert [hit.id for hit in fused] == ["a", "c", "b"]
    assert fused[0].raw == 1 / (60 + 1) + 1 / (60 + 2)
    assert fused[1].raw == 1 / (60 + 3) + 1 / (60 + 1)
    assert fused[2].raw == 1 / (60 + 2)


def test_ranks_2_and_5_counted_from_0_are_added() -> None:
    """The formula with ranks from 0 and k = 60 is the one with ranks from 1 and k = 59."""
    lists = [ranking("keyword", *"pqdrst"), ranking("vector", *"uvwxyd")]
    (found,) = (hit for hit in hits_of(RRF(59), lists) if hit.id == "d")
    assert found.raw == 1 / (60 + 2) + 1 / (60 + 5)
    assert round(found.raw, 4) == 0.0315


def test_a_weight_multiplies_the_contributions_of_its_source() -> None:
    fused = hits_of(RRF(60), [ranking("keyword", "a"), ranking("vector", "b", "a")], {"vector": 3.0})

    assert [(hit.id, hit.raw) for hit in fused] == [("a", 1 / 61 + 3 / 62), ("b", 3 / 61)]


def test_with_a_slope_the_graph_weighs_as_much_as_it_knows_of_the_query() -> None:
    graph = Ranking.of_ids("graph", ("a",), (0.5,), entity_coverage=0.25)
    (hit,) = hits_of(RRF(60, slope=2), [graph, ranking("keyword", "a")], {"graph": 0.5, "keyword": 3.0})
    assert hit.raw == 0.5 * 2 * 0.25 / 61 + 3 / 61
    assert hit.fusion_score == 1.0
    assert hit.sources["graph"] == Contribution(1, 0.5, 0.25, 0.25 / 61)
    assert (str(RRF(60, slope=2)), parse("rrf(slope=2)")) == ("rrf(k=60, slope=2)", RRF(60, slope=2))
    with pytest.raises(ValueError, match="rrf: slope is 101, allowed are 0 to 100"):
        RRF(slope=101)


def test_every_source_that_answered_is_in_the_provenance() -> None:
    first = hits_of(RRF(60), [ranking("keyword", "a", "b"), ranking("vector")], {"keyword": 2.0})[0]

    assert first.sources == {"keyword": Contribution(1, 1.0, 2.0, 2 / 61), "vector": None}


def test_first_in_every_source_is_exactly_one() -> None:
    for k, count in itertools.product((1, 7, 60, 9_999), (1, 2, 3)):
        rankings = [ranking(source, "a", "b") for source in ("graph", "keyword", "vector")[:count]]
        assert hits_of(RRF(k), rankings, {"graph": 0.1, "keyword": 0.7, "vector": 3.3})[0].fusion_score == 1.0


def test_ties_go_to_the_better_keyword_rank_and_then_to_the_smaller_id() -> None:
    tied = [ranking("keyword", "b", "a"), ranking("vector", "a", "b")]
    assert [hit.id for hit in hits_of(RRF(), tied)] == ["b", "a"]

    without_keyword = [ranking("graph", "z"), ranking("vector", "y")]
    assert [hit.id for hit in hits_of(RRF(), without_keyword)] == ["y", "z"]


def test_three_documents_that_tie_are_ordered_by_the_same_rule() -> None:
    fused = hits_of(RRF(), [ranking("graph", "c", "b"), ranking("vector", "b", "c"), ranking("keyword", "a")])
    assert [hit.id for hit in fused] == ["b", "c", "a"]
    assert fused[0].raw == fused[1].raw == 1 / 61 + 1 / 62


def test_the_collections_of_a_source_are_lists_beside_each_other() -> None:
    """Ranks within the collections: the first of each gets 1/61, whatever its score."""
    both = merge_collections([ranking("keyword", "a", "b"), Ranking.of_ids("keyword", ("x", "y"), (0.95, 0.1))])
    assert {hit.id: hit.raw for hit in hits_of(RRF(), [both])} == {
        "a": 1 / 61, "x": 1 / 61, "b": 1 / 62, "y": 1 / 62,
    }  # fmt: skip


@given(rankings(), weights)
def test_the_order_of_the_sources_never_matters(rankings: list[Ranking], weights: dict[str, float]) -> None:
    expected = hits_of(RRF(), rankings, weights)
    for order in itertools.permutations(rankings):
        assert hits_of(RRF(), order, weights) == expected


@given(rankings(), weights, id_lists)
def test_one_more_source_never_lowers_a_sum(
    rankings: list[Ranking], weights: dict[str, float], more: list[str]
) -> None:
    before = {hit.id: hit.raw for hit in hits_of(RRF(), rankings, weights)}
    extra = Ranking.of_ids("zzz", more, [0.0 for _ in more])
    after = {hit.id: hit.raw for hit in hits_of(RRF(), [*rankings, extra], weights)}
    assert all(after[id_] >= raw for id_, raw in before.items())


@given(rankings(), weights)
def test_scores_are_between_0_and_1_and_fall(rankings: list[Ranking], weights: dict[str, float]) -> None:
    fused = hits_of(RRF(), rankings, weights)
    assert all(0 <= hit.fusion_score <= 1 for hit in fused)
    assert all(one.raw >= other.raw for one, other in itertools.pairwise(fused))
    assert {hit.id for hit in fused} == {id_ for each in rankings for id_ in each.ids}


@given(rankings(), st.data())
def test_contributions_are_made_for_the_requested_rows_only(rankings: list[Ranking], data: st.DataObject) -> None:
    candidates = Candidates.of(rankings)
    fused = RRF()(candidates, {}, SOURCES)
    by_id = {hit.id: hit for hit in fused_hits(candidates, fused)}
    requested = np.array(data.draw(st.permutations(fused.rows.tolist()))[:3], np.int64)
    assert fused_hits(candidates, fused, requested) == [by_id[id_] for id_ in candidates.ids(requested)]
    for hit in by_id.values():
        assert hit.raw == pytest.approx(sum(each.contribution for each in hit.sources.values() if each))


def test_a_row_that_is_not_among_the_fused_ones_is_an_error() -> None:
    candidates = Candidates.of([ranking("keyword", "a", "b")])
    fused = RRF()(candidates, {}, SOURCES)
    with pytest.raises(LookupError):
        fused_hits(candidates, fused.above(1.0), np.array([1]))


def test_a_weight_of_zero_gives_a_score_of_zero() -> None:
    (hit,) = hits_of(RRF(), [ranking("vector", "a")], {"vector": 0.0})
    assert (hit.raw, hit.fusion_score) == (0.0, 0.0)


@pytest.mark.parametrize("k", [0, -1, 10_001])
def test_a_k_that_is_not_allowed_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is {k}, allowed are 1 to 10000"):
        RRF(k)
    assert (RRF(1).k, RRF(10_000).k) == (1, 10_000)
