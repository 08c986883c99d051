from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.chunks import collapse, window
from fusion.values import CollapseMode, DocumentFields
from tests.fusion.helpers import listed

CHUNKS = {f"p{index}": DocumentFields("p", index) for index in range(6)} | {
    "q0": DocumentFields("q", 0),
    "q?": DocumentFields("q"),
}


def collapsed(
    ids: Sequence[str], fields: Mapping[str, DocumentFields], mode: CollapseMode, radius: int = 1
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The ids that stay, in order, and for each other id the one that replaces it."""
    candidates = listed(fields, *ids)
    outcome = collapse(candidates, candidates.rows["listed"], mode, radius)
    replaced = {ids[row]: ids[into] for row, into in outcome.collapsed_into.items()}
    return tuple(candidates.ids(outcome.rows)), replaced


def test_of_one_parent_the_best_chunk_stays_at_its_position() -> None:
    assert collapsed(("p3", "x", "p1", "q0"), CHUNKS, "parent") == (("p3", "x", "q0"), {"p1": "p3"})


def test_a_parent_is_dropped_for_its_chunk_however_good_the_parent_is() -> None:
    assert collapsed(("p", "x", "p3", "p1"), CHUNKS, "parent") == (("x", "p3"), {"p": "p3", "p1": "p3"})
    assert collapsed(("p", "x"), CHUNKS, "parent") == (("p", "x"), {})


def test_a_window_drops_the_chunks_within_the_radius_of_a_better_one() -> None:
    ids = ("p3", "p0", "p4", "p5", "p1", "p")
    assert collapsed(ids, CHUNKS, "window", 1) == (("p3", "p0", "p5"), {"p4": "p3", "p1": "p0", "p": "p3"})
    assert collapsed(ids, CHUNKS, "window", 0)[0] == ("p3", "p0", "p4", "p5", "p1")
    assert collapsed(("q0", "q?"), CHUNKS, "window", 9)[0] == ("q0", "q?")


def test_chunks_without_a_position_form_one_window() -> None:
    fields = {"a": DocumentFields("p"), "b": DocumentFields("p"), "c": DocumentFields("p", 0)}
    assert collapsed(("a", "b", "c"), fields, "window", 1) == (("a", "c"), {"b": "a"})


def test_of_two_windows_that_contain_a_chunk_the_better_one_replaces_it() -> None:
    assert collapsed(("p4", "p2", "p3"), CHUNKS, "window", 1)[1] == {"p3": "p4"}
    assert collapsed(("p2", "p4", "p3"), CHUNKS, "window", 1)[1] == {"p3": "p2"}


def test_mode_none_drops_nothing() -> None:
    assert collapsed(("p3", "p1", "p"), CHUNKS, "none") == (("p3", "p1", "p"), {})


def test_chunks_of_each_other_are_not_lost() -> None:
    """Parents may be any ids: a circle, the document itself, a chunk that has chunks."""
    fields = {
        "a": DocumentFields("b"),
        "b": DocumentFields("a"),
        "own": DocumentFields("own"),
        "mid": DocumentFields("top", 1),
        "low": DocumentFields("mid", 1),
    }
    assert collapsed(("a", "b", "own", "top", "mid", "low"), fields, "parent")[0] == ("a", "b", "own", "mid", "low")


def test_a_window_is_named_by_its_parent_and_its_first_and_last_chunk() -> None:
    assert [window("p", 3, 1), window("p", 0, 2)] == ["p:2-4", "p:0-2"]
    assert [window("q", None, 1), window(None, 3, 1), window(None, None, 1)] == [None, None, None]


documents = st.sampled_from([*(f"p{n}" for n in range(6)), *(f"q{n}" for n in range(3)), "p", "q", "x", "y"])
ALL_CHUNKS = {f"{parent}{n}": DocumentFields(parent, n) for parent in "pq" for n in range(6)}


@given(st.lists(documents, unique=True), st.sampled_from(["parent", "window"]), st.integers(0, 3))
def test_every_document_that_is_dropped_is_replaced_by_one_that_stays(
    ids: list[str], mode: CollapseMode, radius: int
) -> None:
    results, replaced = collapsed(ids, ALL_CHUNKS, mode, radius)
    assert list(results) == [id_ for id_ in ids if id_ in set(results)]
    assert set(results) | set(replaced) == set(ids)
    assert set(replaced.values()) <= set(results)
    assert collapsed(results, ALL_CHUNKS, mode, radius) == (results, {})
    if mode == "parent":
        parents = [ALL_CHUNKS[id_].parent if id_ in ALL_CHUNKS else id_ for id_ in results]
        assert len(parents) == len(set(parents))


@pytest.mark.parametrize("mode", ["none", "parent", "window"])
def test_documents_that_are_no_chunks_are_not_dropped(mode: CollapseMode) -> None:
    assert collapsed(("b", "a"), {"a": DocumentFields(importance=3.0)}, mode) == (("b", "a"), {})
    assert collapsed(("b", "a"), {}, mode) == (("b", "a"), {})
    assert collapsed((), {}, mode) == ((), {})
