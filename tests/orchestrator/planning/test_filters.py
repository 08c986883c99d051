"""The filters of a request: what they mean, for any filter, any collections and any document."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import SENSITIVITIES, Document, Record, Scope, Sensitivity
from adapters.model.document import fields
from adapters.model.filter import And, Eq, Filter, In, Or, Range, matches, normal
from adapters.model.filter_limits import check
from adapters.model.filter_values import typed
from orchestrator.auth.principal import Principal
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import NAMED_ONLY, RequestFilters, request_filters
from orchestrator.schema.search import SearchRequest
from tests.adapters.filters import documents, typed_filters

SCOPE = Scope("t", "e")
COLLECTIONS = ("documents", "memory", "history", "notes")

collections = st.none() | st.lists(st.sampled_from(COLLECTIONS), min_size=1, max_size=5).map(tuple)
principals = st.builds(
    Principal,
    st.just("test"),
    st.builds(Scope, st.sampled_from(["t", "u"]), st.sampled_from(["e", "f"])),
    st.sampled_from(SENSITIVITIES),
)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Random documents of any scope, collection and sensitivity."""
    return [
        Record(
            draw(st.sampled_from(["t", "u"])),
            draw(st.sampled_from(["e", "f"])),
            Document(
                **{
                    **{name: getattr(document, name) for name in Document.__struct_fields__},
                    "collection": draw(st.sampled_from(COLLECTIONS)),
                    "sensitivity": draw(st.sampled_from(SENSITIVITIES)),
                }
            ),
        )
        for document in draw(documents())
    ]


def filters_of(
    principal: Principal,
    condition: Filter | None,
    named: tuple[str, ...] | None,
    defaults: tuple[str, ...] = (),
) -> RequestFilters:
    request = SearchRequest(query="q", filter=condition, collections=named)
    return request_filters(request, principal, defaults)


def passes(condition: Filter, record: Record) -> bool:
    return matches(condition, fields(record))


def is_visible(record: Record, principal: Principal) -> bool:
    """The rule of access in other words."""
    return (
        (record.tenant, record.environment) == (principal.scope.tenant, principal.scope.environment)
        and SENSITIVITIES.index(record.document.sensitivity) <= SENSITIVITIES.index(principal.clearance)
    )  # fmt: skip


def _is_allowed(condition: Filter) -> bool:
    try:
        check(condition)
    except ValueError:
        return False
    return True


allowed = st.none() | typed_filters.filter(_is_allowed)


@given(principals, allowed, collections, st.sampled_from([(), ("notes",), ("memory", "documents")]), records())
def test_the_filter_is_access_and_collections_and_the_filter_of_the_request(
    principal: Principal,
    condition: Filter | None,
    named: tuple[str, ...] | None,
    defaults: tuple[str, ...],
    drawn: list[Record],
) -> None:
    result = filters_of(principal, condition, named, defaults)
    searched = named or defaults or tuple(set(COLLECTIONS) - set(NAMED_ONLY))
    for record in drawn:
        assert passes(result.access, record) == is_visible(record, principal)
        expected = (
            is_visible(record, principal)
            and record.document.collection in searched
            and (condition is None or passes(typed(condition), record))
        )
        assert passes(result.filter, record) == expected
        assert any(passes(each, record) for each in result.by_collection) == expected


@given(principals, allowed, collections, records())
def test_no_document_passes_the_filters_of_two_collections(
    principal: Principal, condition: Filter | None, named: tuple[str, ...] | None, drawn: list[Record]
) -> None:
    result = filters_of(principal, condition, named)
    assert len(result.by_collection) == max(1, len(set(named or ())))
    for record in drawn:
        assert sum(passes(each, record) for each in result.by_collection) <= 1


def _conditions(condition: Filter) -> set[Filter]:
    return set(condition.filters) if isinstance(condition, And) else {condition}


@given(principals, allowed, collections)
def test_all_filters_are_in_normal_form_apart_from_the_order_of_their_conditions(
    principal: Principal, condition: Filter | None, named: tuple[str, ...] | None
) -> None:
    result = filters_of(principal, condition, named)
    for each in (result.access, result.filter, *result.by_collection):
        assert _conditions(normal(each)) == _conditions(each)


@given(principals, allowed, st.lists(st.sampled_from(COLLECTIONS), min_size=1, max_size=3, unique=True))
def test_the_order_of_collections_does_not_matter(
    principal: Principal, condition: Filter | None, named: list[str]
) -> None:
    results = [filters_of(principal, condition, order) for order in permutations(named)]
    results.append(filters_of(principal, condition, (*named, named[0])))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("field", ["tenant", "environment"])
def test_a_request_cannot_filter_by_scope(field: str) -> None:
    for condition in (Eq(field, "x"), In(field, ("x",))):
        with pytest.raises(BadRequest, match=f"unknown field '{field}'"):
            filters_of(Principal("test", SCOPE, "normal"), condition, None)


@pytest.mark.parametrize("clearance", SENSITIVITIES)
@pytest.mark.parametrize("condition", [None, In("sensitivity", tuple(SENSITIVITIES))])
def test_a_clearance_includes_all_lower_ones_whatever_the_request_says(
    clearance: Sensitivity, condition: Filter | None
) -> None:
    result = filters_of(Principal("test", SCOPE, clearance), condition, None)
    visible = [
        sensitivity
        for sensitivity in SENSITIVITIES
        if passes(result.filter, Record("t", "e", Document(id="a", text="a", sensitivity=sensitivity)))
    ]
    assert visible == list(SENSITIVITIES[: SENSITIVITIES.index(clearance) + 1])


def test_a_filter_that_is_too_large_for_its_collections_is_refused() -> None:
    """Servers are sent it once for each collection."""
    principal = Principal("test", Scope("default", "test"), "normal")
    condition = Or(tuple(Range(f"metadata.k{number}", gt=0.5) for number in range(40)))
    names = tuple(f"c{number}" for number in range(7))
    request = SearchRequest(query="x", filter=condition, collections=names)
    with pytest.raises(BadRequest, match="161 conditions in each of 7 collections, allowed are 1024 in all"):
        request_filters(request, principal, ())
    assert (
        len(
            request_filters(
                SearchRequest(query="x", filter=condition, collections=names[:6]), principal, ()
            ).by_collection
        )
        == 6
    )
