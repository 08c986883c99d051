from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import Collapse, Facts, collapse, window

CHUNKS = {f"p{index}": Facts("p", index) for index in range(6)} | {"q0": Facts("q", 0), "q?": Facts("q")}


def test_of_one_parent_the_best_chunk_stays_where_it_stands() -> None:
    done = collapse(("p3", "x", "p1", "q0"), CHUNKS, "parent")
    assert done.ids == ("p3", "x", "q0")
    assert done.into == {"p1": "p3"}


def test_a_whole_document_gives_way_to_its_chunk_however_good_it_is() -> None:
    done = collapse(("p", "x", "p3", "p1"), CHUNKS, "parent")
    assert done.ids == ("x", "p3")
    assert done.into == {"p": "p3", "p1": "p3"}
    assert collapse(("p", "x"), CHUNKS, "parent").ids == ("p", "x")


def test_a_window_is_the_chunks_within_the_radius_of_a_better_one() -> None:
    ids = ("p3", "p0", "p4", "p5", "p1", "p")
    assert collapse(ids, CHUNKS, "window", 1).ids == ("p3", "p0", "p5")
    assert collapse(ids, CHUNKS, "window", 1).into == {"p4": "p3", "p1": "p0", "p": "p3"}
    assert collapse(ids, CHUNKS, "window", 0).ids == ("p3", "p0", "p4", "p5", "p1")
    assert collapse(("q0", "q?"), CHUNKS, "window", 9).ids == ("q0", "q?")


def test_of_two_windows_that_a_chunk_lies_in_the_better_takes_it() -> None:
    assert collapse(("p4", "p2", "p3"), CHUNKS, "window", 1).into == {"p3": "p4"}
    assert collapse(("p2", "p4", "p3"), CHUNKS, "window", 1).into == {"p3": "p2"}


def test_none_leaves_everything() -> None:
    assert collapse(("p3", "p1", "p"), CHUNKS, "none").ids == ("p3", "p1", "p")


def test_chunks_of_each_other_are_not_lost() -> None:
    """Whatever parents a writer makes up: a circle, a document of its own, a chunk that has chunks."""
    facts = {"a": Facts("b"), "b": Facts("a"), "own": Facts("own"), "mid": Facts("top", 1), "low": Facts("mid", 1)}
    assert collapse(("a", "b", "own", "top", "mid", "low"), facts, "parent").ids == ("a", "b", "own", "mid", "low")


def test_a_window_is_called_by_its_parent_and_its_ends() -> None:
    assert [window(CHUNKS["p3"], 1), window(CHUNKS["p0"], 2)] == ["p:2-4", "p:0-2"]
    assert [window(CHUNKS["q?"], 1), window(Facts(importance=1.0), 1), window(None, 1)] == [None, None, None]


documents = st.sampled_from([*(f"p{n}" for n in range(6)), *(f"q{n}" for n in range(3)), "p", "q", "x", "y"])
every = {f"{parent}{n}": Facts(parent, n) for parent in "pq" for n in range(6)}


@given(st.lists(documents, unique=True), st.sampled_from(["parent", "window"]), st.integers(0, 3))
def test_nothing_is_lost_that_does_not_give_way_to_something_that_stays(
    ids: list[str], by: Collapse, radius: int
) -> None:
    done = collapse(ids, every, by, radius)
    assert list(done.ids) == [id_ for id_ in ids if id_ in set(done.ids)]
    assert set(done.ids) | set(done.into) == set(ids)
    assert set(done.into.values()) <= set(done.ids)
    assert collapse(done.ids, every, by, radius).ids == done.ids
    if by == "parent":
        parents = [every[id_].parent if id_ in every else id_ for id_ in done.ids]
        assert len(parents) == len(set(parents))


@pytest.mark.parametrize("by", ["none", "parent", "window"])
def test_what_has_no_facts_is_left_alone(by: Collapse) -> None:
    assert collapse(("b", "a"), {"a": Facts(importance=3.0)}, by).ids == ("b", "a")
