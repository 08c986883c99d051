"""Two rankings in one by team draft, and which of the two users prefer."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from adapters import Scope
from adapters.model.feedback import Feedback, FeedbackKind, ShownResponse
from orchestrator.evaluation.interleaving import Preference, preferences
from orchestrator.results.interleaving import team_draft

SCOPE = Scope("t", "e")


def drafted(first: str, second: str, begins: Sequence[bool]) -> tuple[str, str]:
    """The hits, and a 1 for each of the first ranking, a 2 for each of the second one."""
    found = team_draft(list(first), list(second), lambda number: begins[number % len(begins)], lambda hit: hit)  # type: ignore[arg-type, type-var]
    return "".join(str(hit) for hit, _ in found), "".join("1" if is_first else "2" for _, is_first in found)


@pytest.mark.parametrize(
    ("first", "second", "begins", "hits", "teams"),
    [
        ("abcd", "bdef", [True], "abcd", "1212"),
        ("abcd", "bdef", [False], "badc", "2121"),
        ("abcd", "bdef", [True, False], "abdc", "1221"),
        ("abc", "abc", [True], "abc", "121"),
        ("ab", "xyz", [True], "axb", "121"),
        ("ab", "xyz", [False], "xayb", "2121"),
        ("abc", "", [False], "abc", "111"),
        ("", "abc", [False], "", ""),
    ],
)
def test_each_ranking_adds_its_best_hit_in_turn(
    first: str, second: str, begins: list[bool], hits: str, teams: str
) -> None:
    assert drafted(first, second, begins) == (hits, teams)


@given(
    st.permutations("abcdefgh").map(lambda drawn: "".join(drawn[:5])),
    st.permutations("abcdefgh").map(lambda drawn: "".join(drawn[:6])),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.integers(0, 6),
)
def test_what_is_drafted(first: str, second: str, begins: list[bool], end: int) -> None:
    hits, teams = drafted(first, second, begins)
    assert len(set(hits)) == len(hits)
    assert set(first) <= set(hits)  # nothing of the first ranking is lost
    for number, ranking in (("1", first), ("2", second)):
        own = [hit for hit, team in zip(hits, teams, strict=True) if team == number]
        assert own == sorted(own, key=ranking.index)
    shorter = drafted(first[:end], second[:end], begins)[0][:end]
    assert shorter == hits[: len(shorter)]  # a page is the beginning of a longer one
    assert len(shorter) >= min(end, len(first))


def response(
    number: int, profiles: str, kinds: Sequence[tuple[int, FeedbackKind]]
) -> tuple[ShownResponse, list[Feedback]]:
    names = tuple({"j": "joint", "r": "rrf"}[each] for each in profiles)
    hits = tuple(("c", f"d{at}", f"d{at}") for at in range(len(profiles)))
    shown = ShownResponse(str(number), SCOPE, "normal", float(number), "h", None, 1, hits, names)
    return shown, [Feedback(str(number), hit, kind, hit + 1, 0.0) for hit, kind in kinds]


def test_the_profile_of_which_more_hits_are_used_wins() -> None:
    recorded = [
        response(1, "jrjr", [(0, "used"), (0, "useful"), (2, "useful"), (3, "used")]),  # joint, 2 hits to 1
        response(2, "rjrj", [(0, "used")]),  # rrf
        response(3, "rjrj", [(1, "used"), (1, "useful")]),  # joint
        response(4, "jr", [(0, "used"), (1, "used")]),  # as many
        response(5, "jr", [(0, "not_useful")]),
        response(6, "jr", []),
        response(7, "jj", [(0, "used")]),  # one profile
        response(8, "", [(0, "used")]),
    ]
    recorded[-1] = (recorded[-1][0], [])
    (found,) = preferences(recorded)
    assert found == Preference("joint", "rrf", wins=2, losses=1, ties=1, p=1.0)
    assert preferences(recorded[4:]) == []


def test_users_who_prefer_a_profile_are_found_and_others_are_not() -> None:
    """Simulated: users click what is relevant; one profile ranks it first, then both alike."""
    dice = random.Random(1)
    for is_better in (True, False):
        recorded = []
        for number in range(300):
            relevant = dice.sample(range(20), 3)
            others = [each for each in range(20) if each not in relevant]
            dice.shuffle(others)
            rankings = [[*relevant, *others], [*others[:2], *relevant, *others[2:]]]
            if not is_better:
                dice.shuffle(rankings)
            begins = [dice.random() < 0.5 for _ in range(20)]
            found = team_draft(*rankings, begins.__getitem__, lambda hit: hit)[:10]  # type: ignore[arg-type, type-var]
            profiles = "".join("j" if is_first else "r" for _, is_first in found)
            clicks: list[tuple[int, FeedbackKind]] = [
                (at, "used")
                for at, (hit, _) in enumerate(found)
                if dice.random() < (0.8 if hit in relevant else 0.05) / (at + 1)  # type: ignore[comparison-overlap]
            ]
            recorded.append(response(number, profiles, clicks))
        (preference,) = preferences(recorded)
        expected = binomtest(preference.wins, preference.wins + preference.losses).pvalue
        assert preference.p == pytest.approx(expected)
        assert (preference.p < 0.001 and preference.wins > preference.losses) == is_better
