from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.columns import Candidates, Ranking
from fusion.joint_walk import JointWalk
from tests.fusion.helpers import SOURCES, hits_of

TEXT = [Ranking.of_ids("keyword", ("a", "b"), (8.0, 2.0)), Ranking.of_ids("vector", ("b", "c"), (0.5, 0.4))]


def walk(coverage: float = 0.5, *scores: float) -> Ranking:
    return Ranking.of_ids("graph", ("c", "d"), scores or (0.4, 0.1), entity_coverage=coverage)


def seed_ids(strategy: JointWalk, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> list[str]:
    candidates = Candidates.of(rankings)
    return candidates.ids(strategy.seeds(candidates, weights, SOURCES))


def test_scores_are_divided_by_the_best_of_their_source_and_added() -> None:
    fused = {hit.id: hit for hit in hits_of(JointWalk(base=3, slope=12), [*TEXT, walk()])}
    strength = 3 + 12 * 0.5
    assert {id_: hit.raw for id_, hit in fused.items()} == pytest.approx(
        {"a": 1.0, "b": 0.25**2 + 1.0, "c": 0.8**1.5 + strength, "d": strength * sqrt(0.25)}
    )
    assert list(fused) == ["c", "d", "b", "a"]
    assert fused["c"].fusion_score == pytest.approx((0.8**1.5 + strength) / (2 + strength))
    graph = fused["d"].sources["graph"]
    assert graph is not None
    assert (graph.rank, graph.score, graph.weight, graph.contribution) == (2, 0.1, 1.0, strength / 2)
    assert fused["a"].sources == {"graph": None, "keyword": fused["a"].sources["keyword"], "vector": None}
    assert fused["a"].sources["keyword"] is not None


def test_first_in_every_source_is_exactly_one() -> None:
    rankings = [Ranking.of_ids(source, ("x",), (0.3,)) for source in ("graph", "keyword", "vector")]
    assert hits_of(JointWalk(), rankings, {"vector": 0.1, "graph": 0.7})[0].fusion_score == 1.0


def test_contributions_are_multiplied_by_the_weights() -> None:
    weights = {"keyword": 2.0, "vector": 0.0, "graph": 0.5}
    fused = {hit.id: hit.raw for hit in hits_of(JointWalk(base=4, slope=0), [*TEXT, walk()], weights)}
    assert fused == pytest.approx({"a": 2.0, "b": 0.125, "c": 2.0, "d": 1.0})


def test_a_negative_cosine_contributes_nothing() -> None:
    fused = hits_of(JointWalk(), [Ranking.of_ids("vector", ("a", "b"), (-0.1, -0.2))])
    assert [(hit.id, hit.raw, hit.fusion_score) for hit in fused] == [("a", 0.0, 0.0), ("b", 0.0, 0.0)]
    mixed = hits_of(JointWalk(), [Ranking.of_ids("vector", ("a", "b"), (0.1, -0.2))])
    assert [hit.raw for hit in mixed] == [1.0, 0.0]


def test_the_walk_starts_from_the_best_documents_of_the_text_sources() -> None:
    assert seed_ids(JointWalk(), TEXT, {}) == ["b", "a", "c"]
    assert seed_ids(JointWalk(max_seeds=1), TEXT, {"vector": 0.1}) == ["a"]
    assert seed_ids(JointWalk(), [], {}) == []


def test_ties_go_to_the_better_keyword_rank_then_to_the_smaller_id() -> None:
    tied = [Ranking.of_ids("keyword", ("z", "y"), (1.0, 1.0)), Ranking.of_ids("vector", ("x", "w"), (1.0, 1.0))]
    assert [hit.id for hit in hits_of(JointWalk(), tied)] == ["z", "y", "w", "x"]


@given(st.permutations([*TEXT, walk()]))
def test_the_order_of_the_rankings_never_matters(rankings: list[Ranking]) -> None:
    assert hits_of(JointWalk(), rankings) == hits_of(JointWalk(), [*TEXT, walk()])


def test_no_rankings_and_empty_rankings_give_no_hits() -> None:
    assert hits_of(JointWalk(), []) == []
    assert hits_of(JointWalk(), [Ranking.of_ids("graph", (), ())]) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": -1}, "base is -1, allowed are 0 to 100"),
        ({"slope": 101}, "slope is 101, allowed are 0 to 100"),
        ({"max_seeds": 0}, "seeds is 0, allowed are 1 to 1000"),
    ],
)
def test_a_value_out_of_bounds_is_an_error(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JointWalk(**arguments)


@pytest.mark.parametrize(("coverage", "share"), [(0.0, 0.0), (0.025, 0.25), (0.1, 1.0), (0.5, 1.0)])
def test_a_document_that_only_the_walk_knows_counts_as_far_as_the_query_names_entities(
    coverage: float, share: float
) -> None:
    """``d`` is in no text ranking; ``c`` is."""
    fused = {hit.id: hit.raw for hit in hits_of(JointWalk(base=4, slope=12), [*TEXT, walk(coverage)])}
    strength = 4 + 12 * coverage
    assert fused["d"] == pytest.approx(share * strength * sqrt(0.25))
    assert fused["c"] == pytest.approx(0.8**1.5 + strength)


def test_a_text_source_knows_its_first_hundred_documents_however_deep_it_is_searched() -> None:
    ids = [f"{number:03}" for number in range(120)]
    text = Ranking.of_ids("keyword", ids, [1.0] * 120)
    graph = Ranking.of_ids("graph", ids[98:102], [1.0] * 4, entity_coverage=0.05)
    contributions = JointWalk()(Candidates.of([text, graph]), {}, SOURCES).contributions["graph"]
    assert (contributions / contributions[0]).tolist() == [1.0, 1.0, 0.5, 0.5]


def test_a_walk_alone_keeps_its_scores() -> None:
    """The text sources failed, or found nothing."""
    for others in ([], [Ranking.empty("keyword")]):
        hits = hits_of(JointWalk(), [*others, walk(0.0)])
        assert [hit.raw for hit in hits] == pytest.approx([4.0, 2.0])
