"""Who sees a document: the truth table, and its translation to a filter."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters import SENSITIVITIES, Document, Record, Scope, Viewer
from adapters.model.document import fields
from adapters.model.filter import access, matches, normal
from adapters.model.protection import UNRESTRICTED, VISIBILITIES, Protection
from tests.truth_table import ROWS, Row

SCOPE = Scope("t", "e")
_names = st.sampled_from(["alice", "bob", "Alice", "legal"])
_viewers = st.builds(
    Viewer,
    st.sampled_from(SENSITIVITIES),
    st.none() | _names,
    st.lists(_names, max_size=3, unique=True).map(lambda teams: tuple(sorted(teams))),
)
_protections = st.builds(
    Protection, st.sampled_from(SENSITIVITIES), st.sampled_from(VISIBILITIES), st.none() | _names, st.none() | _names
)


def passes_filter(protection: Protection, viewer: Viewer) -> bool:
    document = Document(id="a", text="x", **protection._asdict())
    return matches(normal(access(SCOPE, viewer)), fields(Record(SCOPE.tenant, SCOPE.environment, document)))


def test_the_table_has_every_visibility_both_ways() -> None:
    assert len(ROWS) > 20
    assert {(row.protection.visibility, row.is_seen) for row in ROWS} == {
        (visibility, is_seen) for visibility in VISIBILITIES for is_seen in (True, False)
    }


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_row_of_the_table_holds(row: Row) -> None:
    assert row.viewer.sees(row.protection) is row.is_seen
    assert passes_filter(row.protection, row.viewer) is row.is_seen


@given(_protections, _viewers)
def test_the_filter_says_what_the_viewer_sees(protection: Protection, viewer: Viewer) -> None:
    assert passes_filter(protection, viewer) is viewer.sees(protection)


@given(_viewers, _viewers, _protections)
@example(Viewer(), Viewer(user="alice"), Protection())
@example(Viewer(user="alice"), Viewer(user="alice", teams=("legal",)), Protection(visibility="team", team="legal"))
def test_who_covers_another_viewer_sees_all_that_it_sees(one: Viewer, other: Viewer, document: Protection) -> None:
    assert not (one.covers(other) and other.sees(document)) or one.sees(document)
    assert one.covers(one)
    assert UNRESTRICTED.covers(one)


@given(_viewers, _protections)
def test_who_sees_everything_sees_each_document(viewer: Viewer, document: Protection) -> None:
    assert not viewer.sees_everything or viewer.sees(document)


def test_a_document_of_an_earlier_version_is_for_its_tenant() -> None:
    stored = {"tenant": ("t",), "environment": ("e",), "sensitivity": ("normal",)}
    assert matches(normal(access(SCOPE, Viewer("normal", "bob", ("legal",)))), stored)
