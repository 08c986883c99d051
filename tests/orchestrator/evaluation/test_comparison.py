"""Intervals and differences, with data whose outcome is known in advance."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from orchestrator.evaluation.comparison import SIGNIFICANCE, compare, corrected, interval
from orchestrator.evaluation.measures import mean

BASELINE = {str(n): 0.5 for n in range(30)}

by_query = st.dictionaries(st.text(max_size=3), st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=6)


def test_an_interval_contains_the_mean_and_is_the_same_every_time() -> None:
    values = {str(n): n % 5 / 4 for n in range(40)}
    low, high = interval(values)
    assert 0.3 < low < mean(values) < high < 0.7
    assert interval(values) == (low, high)
    assert interval({"a": 0.25}) == (0.25, 0.25)
    assert interval({}) == (0.0, 0.0)


def test_more_queries_give_a_narrower_interval() -> None:
    few = interval({str(n): n % 2 for n in range(10)})
    many = interval({str(n): n % 2 for n in range(160)})
    # The standard error falls with the square root of the number: 4 times narrower, on a grid of 1/160.
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(4, rel=0.25)


def test_a_clear_difference_is_distinguished_from_noise() -> None:
    better = {query: value + 0.1 for query, value in BASELINE.items()}
    mixed = {query: value + (0.1 if int(query) % 2 else -0.1) for query, value in BASELINE.items()}
    clear = compare("better", "base", better, BASELINE)
    assert clear.p < 0.001 < SIGNIFICANCE
    assert (clear.wins, clear.losses, clear.ties) == (30, 0, 0)
    assert (clear.difference, clear.relative) == (pytest.approx(0.1), pytest.approx(0.2))
    assert compare("mixed", "base", mixed, BASELINE).p > 0.5
    same = compare("base", "base", BASELINE, BASELINE)
    assert (same.p, same.ties, same.interval) == (1.0, 30, (0.0, 0.0))


def test_a_difference_from_zero_is_not_relative() -> None:
    assert compare("a", "b", {"q": 1.0}, {"q": 0.0}).relative is None


def test_p_is_the_exact_fraction_of_sign_flips() -> None:
    """The sign flips, of 2^8, with at least seven equal signs are as extreme as 7 : 1."""
    run = {str(n): 0.6 if n else 0.4 for n in range(8)}
    baseline = {str(n): 0.5 for n in range(8)}
    extreme = 2 * (comb(8, 0) + comb(8, 1))
    assert compare("run", "baseline", run, baseline).p == pytest.approx(extreme / 2**8)


def test_only_queries_that_both_were_judged_on_count() -> None:
    found = compare("run", "base", {"a": 1.0, "b": 0.0, "only": 1.0}, {"a": 0.5, "b": 0.5, "other": 0.0})
    assert (found.wins, found.losses, found.ties) == (1, 1, 0)
    assert (found.value, found.baseline, found.difference) == (0.5, 0.5, 0.0)


@given(by_query, by_query)
def test_exchanging_the_runs_reverses_the_sign_and_nothing_else(
    values: dict[str, float], others: dict[str, float]
) -> None:
    forward, backward = compare("a", "b", values, others), compare("b", "a", others, values)
    assert forward.difference == pytest.approx(-backward.difference)
    assert (forward.wins, forward.losses, forward.ties) == (backward.losses, backward.wins, backward.ties)
    assert forward.p == pytest.approx(backward.p)
    assert forward.interval[0] <= forward.difference <= forward.interval[1] or forward.wins + forward.losses == 0


def test_p_is_corrected_for_the_number_of_comparisons_by_holm() -> None:
    """Of four, the smallest is multiplied by 4, the next by 3; none is smaller than the one before it."""
    base = compare("a", "b", {"q": 1.0}, {"q": 0.0})
    assert base.wins == 1
    ps = (0.01, 0.04, 0.03, 0.005)
    result = corrected([structs.replace(base, against=str(p), p=p) for p in ps])
    assert [each.p for each in result] == list(ps)
    assert [each.corrected_p for each in result] == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_corrected_p_is_at_most_1() -> None:
    equal = [compare("a", name, {"q": 1.0}, {"q": 1.0}) for name in "bcd"]
    assert [each.corrected_p for each in corrected(equal)] == [1.0, 1.0, 1.0]


def test_runs_that_are_equal_for_every_query_do_not_count() -> None:
    better = structs.replace(compare("a", "b", {"q": 1.0}, {"q": 0.0}), p=0.03)
    equal = [compare("a", name, {"q": 1.0}, {"q": 1.0}) for name in "cd"]
    assert [each.corrected_p for each in corrected([*equal, better])] == [1.0, 1.0, 0.03]
