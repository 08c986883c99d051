"""Requests without a query: the documents that match a filter, in an order. And what is counted beside any hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from adapters.model.facets import MAX_FACET_SIZE, MAX_FACETS
from adapters.model.filter_limits import check_field
from adapters.model.filter_values import stored_name
from adapters.ports.listing import SortKey
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import AUTO, FIELDS_OF_RANKING, HYBRID, SearchRequest

REASON = "no query: the documents that match the filter are listed"
_UNSET = SearchRequest(query="")


class ListingPlan(Struct, frozen=True, gc=False):
    """The documents that match the filter are listed.

    :param sort: their order; by id if ``None``.
    """

    sort: SortKey | None


class FacetPlan(Struct, frozen=True, gc=False):
    """A field whose values are counted.

    :param name: as the request writes it.
    :param field: as documents have it.
    :param size: maximum number of values, and of ranges.
    """

    name: str
    field: str
    size: int


def listing_plan(request: SearchRequest) -> ListingPlan | None:
    """How documents are listed; ``None`` if the request has a query, or neither a filter nor collections.

    :raises BadRequest: if the request has a field that does not go with that.
    """
    if request.query or request.like is not None or (request.filter is None and not request.collections):
        if request.sort is not None:
            raise BadRequest("sort: allowed if query is empty and there is a filter; other hits are ranked")
        return None
    if request.mode not in (AUTO, HYBRID):
        allowed = f"{AUTO} and {HYBRID}"
        raise BadRequest(f"mode: {request.mode[:80]!r} searches for a query, which is empty; allowed are {allowed}")
    for name in FIELDS_OF_RANKING:
        if getattr(request, name) != getattr(_UNSET, name):
            raise BadRequest(f"{name}: allowed with a query; without one nothing is ranked")
    if request.sort is None:
        return ListingPlan(None)
    field = request.sort.removeprefix("-")
    return ListingPlan(SortKey(_checked(field, "sort"), descending=request.sort.startswith("-")))


def facet_plans(facets: Mapping[str, int]) -> tuple[FacetPlan, ...]:
    """What is counted, in the order of the names.

    :raises BadRequest: if a field cannot be counted, or there are too many.
    """
    if len(facets) > MAX_FACETS:
        raise BadRequest(f"facets: {len(facets)} fields, allowed are {MAX_FACETS}")
    plans = tuple(_facets(facets))
    for one, two in pairwise(sorted(plans, key=lambda plan: plan.field)):
        if one.field == two.field:
            raise BadRequest(f"facets: {one.name[:80]!r} and {two.name[:80]!r} are the same field")
    return plans


def _facets(facets: Mapping[str, int]) -> Iterator[FacetPlan]:
    for name, size in sorted(facets.items()):
        if not 1 <= size <= MAX_FACET_SIZE:
            raise BadRequest(f"facets: {size} values of {name[:80]!r}, allowed are 1 to {MAX_FACET_SIZE}")
        yield FacetPlan(name, _checked(name, "facets"), size)


def _checked(field: str, where: str) -> str:
    """The name of a field as documents have it."""
    try:
        check_field(field, where)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    return stored_name(field)
