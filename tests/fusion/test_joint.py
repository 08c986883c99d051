from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import JointWalk, Ranking

TEXT = [Ranking("keyword", ("a", "b"), (8.0, 2.0)), Ranking("vector", ("b", "c"), (0.5, 0.4))]


def walk(coverage: float = 0.5, *scores: float) -> Ranking:
    return Ranking("graph", ("c", "d"), scores or (0.4, 0.1), coverage=coverage)


def test_scores_are_scaled_by_their_best_and_added() -> None:
    fused = {hit.id: hit for hit in JointWalk(base=3, slope=12)([*TEXT, walk()], {}).hits()}
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


def test_first_everywhere_is_one() -> None:
    everywhere = [Ranking(source, ("x",), (0.3,)) for source in ("graph", "keyword", "vector")]
    assert JointWalk()(everywhere, {"vector": 0.1, "graph": 0.7}).hits()[0].fusion_score == 1.0


def test_weights_weigh() -> None:
    weights = {"keyword": 2.0, "vector": 0.0, "graph": 0.5}
    fused = {hit.id: hit.raw for hit in JointWalk(base=4, slope=0)([*TEXT, walk()], weights).hits()}
    assert fused == pytest.approx({"a": 2.0, "b": 0.125, "c": 2.0, "d": 1.0})


def test_a_cosine_under_zero_says_nothing() -> None:
    fused = JointWalk()([Ranking("vector", ("a", "b"), (-0.1, -0.2))], {}).hits()
    assert [(hit.id, hit.raw, hit.fusion_score) for hit in fused] == [("a", 0.0, 0.0), ("b", 0.0, 0.0)]
    mixed = JointWalk()([Ranking("vector", ("a", "b"), (0.1, -0.2))], {}).hits()
    assert [hit.raw for hit in mixed] == [1.0, 0.0]


def test_the_walk_starts_from_the_best_of_the_text() -> None:
    assert JointWalk().start(TEXT, {}) == ("b", "a", "c")
    assert JointWalk(seeds=1).start(TEXT, {"vector": 0.1}) == ("a",)
    assert JointWalk().start([], {}) == ()


def test_ties_go_to_the_better_keyword_rank_then_to_the_id() -> None:
    tied = [Ranking("keyword", ("z", "y"), (1.0, 1.0)), Ranking("vector", ("x", "w"), (1.0, 1.0))]
    assert [hit.id for hit in JointWalk()(tied, {}).hits()] == ["z", "y", "w", "x"]


@given(st.permutations([*TEXT, walk()]))
def test_the_order_of_the_answers_never_matters(rankings: list[Ranking]) -> None:
    assert JointWalk()(rankings, {}).hits() == JointWalk()([*TEXT, walk()], {}).hits()


def test_nothing_gives_nothing() -> None:
    assert JointWalk()([], {}).hits() == []
    assert JointWalk()([Ranking("graph", (), ())], {}).hits() == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"base": -1}, "base is -1, allowed are 0 to 100"),
        ({"slope": 101}, "slope is 101, allowed are 0 to 100"),
        ({"seeds": 0}, "seeds is 0, allowed are 1 to 1000"),
    ],
)
def test_what_is_out_of_bounds_is_refused(arguments: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        JointWalk(**arguments)
