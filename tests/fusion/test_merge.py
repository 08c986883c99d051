from __future__ import annotations

import pytest

from fusion import Facts, Ranking, merged

ONE = Ranking("keyword", ("a", "b"), (9.0, 2.0), facts={"a": Facts("p", 0)})
OTHER = Ranking("keyword", ("x", "y"), (4.0, 2.0), coverage=0.5, facts={"y": Facts(importance=1.0)})


def test_the_order_is_that_of_the_scores_and_ranks_are_those_of_the_parts() -> None:
    both = merged([ONE, OTHER])
    assert [(hit.id, hit.rank, hit.score) for hit in both] == [
        ("a", 1, 9.0),
        ("x", 1, 4.0),
        ("b", 2, 2.0),
        ("y", 2, 2.0),
    ]
    assert both.coverage == 0.5
    assert set(both.facts) == {"a", "y"}
    assert merged([OTHER, ONE]) == both


def test_what_two_parts_hold_stands_once_where_it_stands_better() -> None:
    both = merged([ONE, Ranking("keyword", ("b", "x"), (4.0, 1.0))])
    assert [(hit.id, hit.rank, hit.score) for hit in both] == [("a", 1, 9.0), ("b", 1, 4.0), ("x", 2, 1.0)]


def test_one_part_is_itself() -> None:
    assert merged([ONE]) is ONE


@pytest.mark.parametrize("parts", [[], [ONE, Ranking("vector", (), ())]])
def test_what_is_not_of_one_source_is_refused(parts: list[Ranking]) -> None:
    with pytest.raises(ValueError, match="not of one"):
        merged(parts)
