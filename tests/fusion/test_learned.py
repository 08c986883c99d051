from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.columns import Candidates, Ranking
from fusion.joint_walk import JointWalk
from fusion.learned import BASE_FACTOR, UNIT, Learned, encode, feature_columns, feature_names, file_of, scores_by_row
from fusion.rrf import RRF
from fusion.strategy import Strategy
from fusion.trees import Tree
from tests.fusion.helpers import SOURCES, hits_of

RANKINGS = [
    Ranking.of_ids("keyword", ("a", "b"), (8.0, 2.0)),
    Ranking.of_ids("vector", ("b", "c", "d"), (0.5, 0.4, -0.1)),
    Ranking.of_ids("graph", ("c",), (0.2,), entity_coverage=0.75),
]
NAMES = feature_names(("vector", "keyword", "graph"))


def step(feature: str, threshold: float, low: float, high: float, names: Sequence[str] = NAMES) -> Tree:
    """A tree with one inner node."""
    return Tree([names.index(feature)], [threshold], [~0], [~1], [round(low / UNIT), round(high / UNIT)])


def learned(*trees: Tree, base: Strategy | None = None, names: Sequence[str] = NAMES) -> Learned:
    return Learned.decode(encode(str(base or JointWalk()), names, trees))


def test_the_features_of_a_document() -> None:
    candidates = Candidates.of(RANKINGS)
    fused = RRF()(candidates, {}, SOURCES)
    columns = feature_columns(candidates, scores_by_row(candidates, fused), [*NAMES, "other.score", "other.rank"])
    by_id = dict(zip(candidates.ids(np.arange(len(candidates))), columns.T.tolist(), strict=True))
    scores = {hit.id: hit.fusion_score for hit in hits_of(RRF(), RANKINGS)}
    assert NAMES[:4] == ["fused", "coverage", "graph.score", "graph.rank"]
    assert NAMES[4:] == ["keyword.score", "keyword.rank", "vector.score", "vector.rank"]
    assert by_id == {
        "a": [scores["a"], 0.75, 0, 0, 1.0, 1.0, 0, 0, 0, 0],
        "b": [scores["b"], 0.75, 0, 0, 0.25, 0.5, 1.0, 1.0, 0, 0],
        "c": [scores["c"], 0.75, 1.0, 1.0, 0, 0, 0.4 / 0.5, 0.5, 0, 0],
        "d": [scores["d"], 0.75, 0, 0, 0, 0, 0, 1 / 3, 0, 0],
    }


def test_trees_are_added_to_the_score_of_the_other_strategy() -> None:
    before = {hit.id: hit for hit in hits_of(JointWalk(), RANKINGS)}
    after = hits_of(learned(step("keyword.rank", 0.75, -0.5, 20.0), step("coverage", 0.5, 7.0, 0.25)), RANKINGS)
    raw = {id_: BASE_FACTOR * hit.fusion_score + 0.25 + (20.0 if id_ == "a" else -0.5) for id_, hit in before.items()}
    assert {hit.id: hit.raw for hit in after} == pytest.approx(raw)
    assert [hit.id for hit in after] == ["a", *(id_ for id_ in before if id_ != "a")]
    lowest, highest = -0.5 + 0.25, BASE_FACTOR + 20 + 7
    assert after[0].fusion_score == pytest.approx((raw["a"] - lowest) / (highest - lowest))
    assert all(hit.sources == before[hit.id].sources for hit in after)


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from([0.1, 0.5, 0.9]), st.floats(-30, 30), st.floats(-30, 30)).map(
            lambda drawn: step(*drawn)
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([JointWalk(), RRF()]),
)
def test_scores_are_between_0_and_1_and_never_rise(trees: list[Tree], base: Strategy) -> None:
    candidates = Candidates.of(RANKINGS)
    fused = learned(*trees, base=base)(candidates, {}, SOURCES)
    assert sorted(fused.rows.tolist()) == list(range(len(candidates)))
    assert ((fused.score >= 0) & (fused.score <= 1)).all()
    assert (np.diff(fused.score) <= 0).all()
    assert (np.diff(fused.raw) <= 0).all()


def test_a_source_that_was_not_searched_has_no_features() -> None:
    trees = learned(step("graph.rank", 0.5, 0.0, 20.0), step("vector.rank", 0.9, 0.0, 5.0))
    assert [hit.id for hit in hits_of(trees, RANKINGS[:2])] == ["b", "a", "c", "d"]
    assert hits_of(trees, []) == []


def test_the_name_is_that_of_the_content() -> None:
    one, other = step("fused", 0.5, 0.0, 1.0), step("fused", 0.5, 0.0, 2.0)
    assert str(learned(one)) == str(learned(one)) != str(learned(other))
    assert str(learned(one)).startswith("learned(")
    assert len(file_of(str(learned(one))) or "") == 16


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("learned(/models/a b.json)", "/models/a b.json"),
        (" learned( x.json ) ", "x.json"),
        ("learned(a(1).json)", "a(1).json"),
        ("learned()", None),
        ("learned", None),
        ("rrf(k=60)", None),
        ("xlearned(a)", None),
    ],
)
def test_the_file_of_a_text(text: str, file: str | None) -> None:
    assert file_of(text) == file


MODEL: dict[str, Any] = json.loads(encode("rrf(k=60)", ["fused"], [step("fused", 0.5, 0.0, 1.0, ["fused"])]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": 2}, "format 2, allowed is 1"),
        ({"base": "best"}, "unknown fusion strategy 'best'"),
        ({"base": "learned(/etc/passwd)"}, "unknown fusion strategy"),
        ({"features": ["fused.best"]}, "feature 'fused.best', allowed are fused, coverage, SOURCE.score, SOURCE.rank"),
        ({"features": ["fused"] * 65}, "65 features, allowed are at most 64"),
        ({"features": []}, "tree 1: a feature is not in 0 to -1"),
        ({"trees": []}, "0 trees, allowed are 1 to 50"),
        ({"trees": [{}]}, "not a file of trivium tune --learn"),
        ({"more": 1}, "not a file of trivium tune --learn"),
    ],
)
def test_what_is_no_model_is_refused(changed: dict[str, Any], message: str) -> None:
    Learned.decode(json.dumps(MODEL).encode())
    with pytest.raises(ValueError, match=message):
        Learned.decode(json.dumps({**MODEL, **changed}).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a file of trivium tune --learn"):
        Learned.decode(data)
