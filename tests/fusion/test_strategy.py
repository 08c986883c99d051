from __future__ import annotations

import pytest

from fusion.columns import Ranking
from fusion.concatenate import Concatenate
from fusion.joint_walk import JointWalk
from fusion.rrf import RRF
from fusion.strategy import STRATEGIES, SeededStrategy, parse
from tests.fusion.helpers import hits_of


@pytest.mark.parametrize("text", ["rrf(k=60)", "rrf(k=1)", "concatenate()", "joint_walk(base=1, slope=2, seeds=3)"])
def test_a_strategy_prints_as_it_is_written(text: str) -> None:
    assert str(parse(text)) == text


def test_every_strategy_of_the_table_is_parsed_from_what_it_prints() -> None:
    for strategy in STRATEGIES.values():
        assert parse(str(strategy())) == strategy()


@pytest.mark.parametrize(("text", "expected"), [("rrf", RRF(60)), ("rrf()", RRF(60)), (" rrf( k = 7 ) ", RRF(7))])
def test_spaces_and_default_values_may_be_left_out(text: str, expected: RRF) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "best",
            "strategy 'best', allowed are concatenate\\(\\), dbsf\\(\\), joint_walk.*, rrf\\(k=60\\), weighted",
        ),
        ("rrf(k=0)", "k is 0, allowed are 1 to 10000"),
        ("rrf(k=x)", "'k=x' is not of the form key=integer"),
        ("rrf(z=1)", "unknown key, write rrf\\(k=60\\)"),
        ("joint_walk(seeds=0)", "seeds is 0, allowed are 1 to 1000"),
        ("joint_walk(max_seeds=5)", "unknown key, write joint_walk\\(base=4, slope=12, seeds=50\\)"),
        ("rrf(k=60", "unknown fusion strategy"),
        ("", "unknown fusion strategy ''"),
        ("__class__", "unknown fusion strategy"),
    ],
)
def test_the_error_for_an_invalid_strategy_lists_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_only_the_joint_walk_has_a_second_stage() -> None:
    seeded = {name for name, strategy in STRATEGIES.items() if isinstance(strategy(), SeededStrategy)}
    assert seeded == {"joint_walk"}
    assert parse("joint_walk") == JointWalk(4, 12, 50)


def test_concatenating_goes_by_priority_and_repeats_no_document() -> None:
    rankings = [
        Ranking.of_ids("graph", ("d", "a"), (1.0, 0.5)),
        Ranking.of_ids("vector", ("b", "c"), (0.9, 0.8)),
        Ranking.of_ids("keyword", ("a", "b"), (9.0, 8.0)),
    ]
    fused = hits_of(Concatenate(), rankings)

    assert [hit.id for hit in fused] == ["a", "b", "c", "d"]
    assert [hit.fusion_score for hit in fused] == [1.0, 0.75, 0.5, 0.25]
    assert fused == hits_of(Concatenate(), rankings[::-1])
    graph = fused[0].sources["graph"]
    assert graph is not None
    assert graph.rank == 2
    assert fused[2].sources["keyword"] is None


def test_concatenating_nothing_gives_no_hits() -> None:
    assert hits_of(Concatenate(), []) == []
    assert hits_of(Concatenate(), [Ranking.empty("vector")]) == []
