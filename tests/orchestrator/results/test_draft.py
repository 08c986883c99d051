"""Two rankings in one by team draft, and which of the two users prefer."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from adapters import Scope, Viewer
from adapters.model.feedback import Feedback, FeedbackKind, ShownResponse
from orchestrator.evaluation.user_preferences import Preference, preferences
from orchestrator.results.draft import Entry, team_draft

SCOPE = Scope("t", "e")


def ranking(documents: str) -> list[Entry]:
    """Documents, each of a group of its own; one in upper case is of the group of the one in lower case."""
    return [Entry(each, each.lower()) for each in documents]


def drafted(first: str, second: str, begins: Sequence[bool]) -> tuple[str, str]:
    """The documents; a 1 for each of the first ranking, a 2 for each of the second, a dot if it does not count."""
    found = team_draft(ranking(first), ranking(second), lambda number: begins[number % len(begins)])
    documents = "".join((first if each.is_first else second)[each.place] for each in found)
    return documents, "".join((("1" if each.is_first else "2") if each.counts else ".") for each in found)


@pytest.mark.parametrize(
    ("first", "second", "begins", "documents", "teams"),
    [
        ("abcd", "bdef", [True], "abcdef", "1212.."),
        ("abcd", "bdef", [False], "badcef", "2121.."),
        ("abcd", "bdef", [True, False], "abdcef", "1221.."),
        ("abc", "abc", [True], "abc", "12."),
        ("abc", "abc", [False], "abc", "21."),
        ("ab", "xyz", [True], "axbyz", "1212."),
        ("abc", "", [False], "abc", "..."),
        ("", "abc", [False], "abc", "..."),
        ("aB", "Ab", [True], "ab", "12"),
        ("aAb", "c", [True], "acAb", "12.."),
        ("aA", "A", [True], "aA", ".."),
    ],
)
def test_each_ranking_adds_its_best_document_in_turn(
    first: str, second: str, begins: list[bool], documents: str, teams: str
) -> None:
    assert drafted(first, second, begins) == (documents, teams)


_documents = st.permutations("abcdefABCDEF").map("".join)


@given(_documents, st.integers(0, 12), _documents, st.integers(0, 12), st.lists(st.booleans(), min_size=9, max_size=9))
def test_what_is_drafted(first: str, ends: int, second: str, end: int, begins: list[bool]) -> None:
    first, second = first[:ends], second[:end]
    documents, teams = drafted(first, second, begins)
    assert len(set(documents)) == len(documents) == len(teams)
    assert set(documents.lower()) == set((first + second).lower())  # no group of either ranking is lost
    for is_first, own in ((True, first), (False, second)):
        found = team_draft(ranking(first), ranking(second), lambda number: begins[number % 9])
        places = [each.place for each in found if each.is_first == is_first]
        assert places == sorted(places)
        # What is left out is there already, or is of a group of the other ranking.
        other = second if is_first else first
        others = "".join(other[each.place] for each in found if each.is_first != is_first)
        left = [each for place, each in enumerate(own) if place not in places]
        assert all(each.lower() in others.lower() for each in left)
    counted = teams.rstrip(".")
    assert "." not in counted
    assert counted.count("1") == counted.count("2")


def response(
    number: int, profiles: str, kinds: Sequence[tuple[int, FeedbackKind]]
) -> tuple[ShownResponse, list[Feedback]]:
    names = tuple({"j": "joint", "r": "rrf", ".": None}[each] for each in profiles)
    hits = tuple(("c", f"d{at}", f"d{at}") for at in range(len(profiles)))
    shown = ShownResponse(str(number), SCOPE, Viewer("normal"), float(number), f"query {number}", None, 1, hits, names)
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
        response(8, "", []),
        response(9, "jr..", [(2, "used"), (3, "used")]),  # no hit that counts
        response(10, "rj..", [(0, "used"), (2, "used")]),  # rrf
    ]
    (found,) = preferences(recorded)
    assert found == Preference("joint", "rrf", wins=2, losses=2, ties=1, p=1.0)
    assert preferences(recorded[4:-1]) == []


def test_a_frequent_query_counts_once() -> None:
    recorded = [response(1, "jr", [(0, "used")]) for _ in range(50)]
    recorded += [response(number, "rj", [(0, "used")]) for number in (2, 3)]
    assert preferences(recorded) == [Preference("joint", "rrf", wins=1, losses=2, ties=0, p=1.0)]


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
            entries = [[Entry(str(each), str(each)) for each in ranked] for ranked in rankings]
            found = team_draft(*entries, begins.__getitem__)[:10]
            shown = [rankings[0 if each.is_first else 1][each.place] for each in found]
            profiles = "".join("j" if each.is_first else "r" for each in found)
            clicks: list[tuple[int, FeedbackKind]] = [
                (at, "used")
                for at, document in enumerate(shown)
                if dice.random() < (0.8 if document in relevant else 0.05) / (at + 1)
            ]
            recorded.append(response(number, profiles, clicks))
        (preference,) = preferences(recorded)
        expected = binomtest(preference.wins, preference.wins + preference.losses).pvalue
        assert preference.p == pytest.approx(expected)
        assert (preference.p < 0.001 and preference.wins > preference.losses) == is_better
