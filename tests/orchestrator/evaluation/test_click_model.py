"""Relevance from clicks: users look at high positions more often."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import kendalltau

from orchestrator.evaluation.click_model import MAX_POSITION, Shown, fitted

EXAMINED = (1.0, 0.7, 0.5, 0.38, 0.3, 0.24, 0.2, 0.17, 0.15, 0.13)
QUERIES, DOCUMENTS = 40, len(EXAMINED)


def simulated(sessions: int) -> tuple[np.ndarray, list[Shown]]:
    """How attractive each document is, and what users clicked. The ranking of a query changes twice."""
    dice = np.random.default_rng(1)
    attractive = dice.beta(0.6, 1.5, (QUERIES, DOCUMENTS))
    shown = []
    for query in range(QUERIES):
        ranking = dice.permutation(DOCUMENTS)
        for session in range(sessions):
            order = (ranking, np.roll(ranking, 1), ranking[::-1])[session % 3]
            for position, document in enumerate(order):
                is_clicked = bool(dice.random() < EXAMINED[position] * attractive[query, document])
                shown.append(Shown((str(query), str(document)), position + 1, is_clicked))
    return attractive, shown


def test_simulated_clicks_give_back_what_made_them() -> None:
    attractive, shown = simulated(200)
    model = fitted(shown)
    assert model.examination == pytest.approx(EXAMINED, abs=0.06)
    estimated = np.array(
        [[model.attractiveness[str(query), str(each)] for each in range(DOCUMENTS)] for query in range(QUERIES)]
    )
    assert np.abs(estimated - attractive).mean() < 0.05
    clicks = np.zeros((QUERIES, DOCUMENTS))
    for each in shown:
        clicks[int(each.pair[0]), int(each.pair[1])] += each.is_clicked

    def agreement(found: np.ndarray) -> float:
        return float(np.mean([kendalltau(attractive[query], found[query]).statistic for query in range(QUERIES)]))

    assert agreement(estimated) > agreement(clicks) + 0.05
    assert max(model.looks.values()) < 200


def test_the_order_of_what_was_shown_changes_nothing() -> None:
    _, shown = simulated(10)
    again = shown.copy()
    random.Random(2).shuffle(again)
    assert fitted(shown) == fitted(again)


def test_a_document_low_in_the_list_is_not_blamed_for_its_position() -> None:
    shown = [Shown(("q", "top"), 1, number < 30) for number in range(100)]
    shown += [Shown(("q", "low"), 5, number < 20) for number in range(100)]
    shown += [Shown((f"other {number % 7}", "x"), 1, number < 60) for number in range(140)]
    shown += [Shown((f"other {number % 7}", "y"), 5, number < 20) for number in range(140)]
    model = fitted(shown).attractiveness
    assert model["q", "low"] > model["q", "top"]


def test_little_is_no_certainty() -> None:
    assert fitted([]).attractiveness == {}
    model = fitted([Shown(("q", "a"), 1, True), Shown(("q", "b"), 2, False)])
    assert 0 < model.attractiveness["q", "b"] < model.attractiveness["q", "a"] < 1
    far = fitted([Shown(("q", "a"), 9_000, True), Shown(("q", "a"), MAX_POSITION, False)])
    assert len(far.examination) == MAX_POSITION
    assert 0 < far.attractiveness["q", "a"] <= 1


def test_positions_that_were_never_shown_change_nothing() -> None:
    clicks = [(1, 60), (2, 40), (3, 20), (4, 10)]

    def model(moved_by: int) -> tuple[dict[str, float], list[float]]:
        shown = [
            Shown((f"q{number % 5}", str((position + number) % 4)), position + moved_by, number < clicked)
            for position, clicked in clicks
            for number in range(100)
        ]
        found = fitted(shown)
        return {document: found.attractiveness[query, document] for query, document in sorted(found.looks)}, (
            found.examination
        )

    (here, examined), (there, examined_there) = model(0), model(3)
    assert examined_there[:3] == [0, 0, 0]
    assert examined_there[3:] == pytest.approx(examined, abs=0.02)
    assert there == pytest.approx(here, abs=0.02)
