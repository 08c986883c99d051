from __future__ import annotations

import pytest

from fusion import RRF, STRATEGIES, Concatenate, Ranking, parse


@pytest.mark.parametrize("written", ["rrf(k=60)", "rrf(k=1)", "concatenate()"])
def test_a_strategy_prints_as_it_is_written(written: str) -> None:
    assert str(parse(written)) == written


def test_every_strategy_in_the_table_reads_back_what_it_prints() -> None:
    for strategy in STRATEGIES.values():
        assert parse(str(strategy())) == strategy()


@pytest.mark.parametrize(("written", "meant"), [("rrf", RRF(60)), ("rrf()", RRF(60)), (" rrf( k = 7 ) ", RRF(7))])
def test_spaces_and_defaults_may_be_left_out(written: str, meant: RRF) -> None:
    assert parse(written) == meant


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (
            "best",
            "strategy 'best', allowed are concatenate\\(\\), dbsf\\(\\), joint_walk.*, rrf\\(k=60\\), weighted",
        ),
        ("rrf(k=0)", "k is 0, allowed are 1 to 10000"),
        ("rrf(k=x)", "'k=x' is not of the form key=integer"),
        ("rrf(z=1)", "unknown key, write rrf\\(k=60\\)"),
        ("rrf(k=60", "unknown fusion strategy"),
        ("", "unknown fusion strategy ''"),
        ("__class__", "unknown fusion strategy"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_can(written: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(written)


def test_concatenating_goes_by_priority_and_repeats_nothing() -> None:
    asked = [
        Ranking("graph", ("d", "a"), (1.0, 0.5)),
        Ranking("vector", ("b", "c"), (0.9, 0.8)),
        Ranking("keyword", ("a", "b"), (9.0, 8.0)),
    ]
    fused = Concatenate()(asked, {}).hits()

    assert [hit.id for hit in fused] == ["a", "b", "c", "d"]
    assert [hit.fusion_score for hit in fused] == [1.0, 0.75, 0.5, 0.25]
    assert fused == Concatenate()(asked[::-1], {}).hits()
    graph = fused[0].sources["graph"]
    assert graph is not None
    assert graph.rank == 2
    assert fused[2].sources["keyword"] is None
