from __future__ import annotations

import pickle
from math import log2
from pathlib import Path

import pytest

from orchestrator.evaluation import measures, trec
from orchestrator.evaluation.dataset import BadDataset
from orchestrator.outcome import AllSourcesFailed, Failed

JUDGED = {"q": {"a": 2, "b": 1, "c": 0}, "r": {"x": 1}}
RUN = {"q": [("c", 3.0), ("a", 2.0), ("z", 1.5), ("b", 1.0)]}


def test_measures_by_hand() -> None:
    """Gains 0, 2, 0, 1 against the ideal 2, 1; a query without an answer is 0."""
    judged = measures.judge(JUDGED, RUN)
    ideal = 2 / log2(2) + 1 / log2(3)
    assert judged["nDCG@10"] == pytest.approx({"q": (2 / log2(3) + 1 / log2(5)) / ideal, "r": 0.0})
    assert judged["MRR@10"] == {"q": 0.5, "r": 0.0}
    assert judged["R@2"] == {"q": 0.5, "r": 0.0}
    assert judged["R@5"] == {"q": 1.0, "r": 0.0}


def test_an_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    values = {str(n): n % 5 / 4 for n in range(40)}
    low, high = measures.interval(values)
    assert 0.3 < low < measures.mean(values) < high < 0.7
    assert measures.interval(values) == (low, high)
    assert measures.interval({"a": 0.25}) == (0.25, 0.25)
    assert measures.interval({}) == (0.0, 0.0)


def test_a_clear_difference_is_told_from_noise() -> None:
    base = {str(n): 0.5 for n in range(30)}
    better = {query: value + 0.1 for query, value in base.items()}
    mixed = {query: value + (0.1 if int(query) % 2 else -0.1) for query, value in base.items()}
    clear = measures.compare("better", "base", better, base)
    assert clear.p < 0.001
    assert (clear.wins, clear.losses, clear.ties) == (30, 0, 0)
    assert (clear.difference, clear.relative) == (pytest.approx(0.1), pytest.approx(0.2))
    assert measures.compare("mixed", "base", mixed, base).p > 0.5
    same = measures.compare("base", "base", base, base)
    assert (same.p, same.ties, same.interval) == (1.0, 30, (0.0, 0.0))


def test_nothing_is_relative_to_nothing() -> None:
    assert measures.compare("a", "b", {"q": 1.0}, {"q": 0.0}).relative is None


def test_a_run_survives_its_file(tmp_path: Path) -> None:
    trec.write_run(tmp_path / "run", RUN, "tag")
    assert trec.read_run(tmp_path / "run") == RUN
    assert (tmp_path / "run").read_text().splitlines()[1] == "q Q0 a 2 2.0 tag"


@pytest.mark.parametrize("line", ["q Q0 d 1 nan t", "q Q0 d 1 inf t", "q Q0 d 1 t"])
def test_a_score_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "run").write_text(f"\n{line}\n")
    with pytest.raises(BadDataset, match=f"line 2: '{line}' is not 6 columns"):
        trec.read_run(tmp_path / "run")


def test_what_failed_survives_the_way_from_another_process() -> None:
    failed = AllSourcesFailed((Failed("graph", "away", 1.5),))
    again = pickle.loads(pickle.dumps(failed))  # noqa: S301  # made here
    assert (str(again), again.failures) == (str(failed), failed.failures)


@pytest.mark.parametrize("id_", ["two words", "", " a", "tab\tbed"])
def test_an_id_that_the_format_cannot_hold_is_refused(tmp_path: Path, id_: str) -> None:
    with pytest.raises(BadDataset, match="white space"):
        trec.write_run(tmp_path / "run", {"q": [(id_, 1.0)]}, "tag")
