"""The filters of a request in normal form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from adapters import Scope, Viewer
from adapters.model.filter import And, Eq, Filter, In, Not, conjunction, normal
from adapters.model.filter_limits import check
from adapters.model.filter_values import typed
from orchestrator.auth.principal import Principal
from orchestrator.auth.visibility import access_filter
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import SearchRequest

MEMORY = "memory"
NAMED_ONLY = (MEMORY, "history")
"""Collections that a search covers only if the request names them."""
MAX_NODES_IN_ALL = 1_024
"""Maximum of conditions times collections: a server receives the filter once for each collection."""


@dataclass(frozen=True, slots=True)
class RequestFilters:
    """``access``: what the principal may see. ``filter``: what this request may return. ``by_collection``: filters that
    together mean the same as ``filter``, one for each collection if the request names several. All in normal form.
    ``left_out``: the collections that are excluded if the request names none; ``None`` if it names some.
    """

    access: Filter
    filter: Filter
    by_collection: tuple[Filter, ...]
    left_out: tuple[str, ...] | None


def request_filters(
    request: SearchRequest, principal: Principal, default_collections: tuple[str, ...]
) -> RequestFilters:
    """The filters of a request.

    :raises BadRequest: if the request's own filter is not allowed.
    """
    own, nodes = None, 0
    if request.filter is not None:
        own, nodes = _checked(request.filter)
    collections = request.collections or default_collections
    if request.include_memory and collections:
        collections = (*collections, MEMORY)
    if nodes * len(collections) > MAX_NODES_IN_ALL:
        count = f"{nodes} conditions in each of {len(collections)} collections"
        raise BadRequest(f"filter: {count}, allowed are {MAX_NODES_IN_ALL} in all")
    excluded = tuple(name for name in NAMED_ONLY if not (request.include_memory and name == MEMORY))
    scope, viewer = principal.scope, principal.viewer

    def narrowed(names: tuple[str, ...]) -> Filter:
        within = _in_collections(scope, viewer, names, excluded)
        return within if own is None else conjunction(within, own)

    all_collections = narrowed(collections)
    distinct = sorted(set(collections))
    by_collection = tuple(narrowed((name,)) for name in distinct) if len(distinct) > 1 else (all_collections,)
    left_out = None if collections else excluded
    return RequestFilters(access_filter(scope, viewer), all_collections, by_collection, left_out)


def request_filter(condition: Filter) -> Filter:
    """The filter of a request in normal form.

    :raises BadRequest: if it is not allowed.
    """
    return _checked(condition)[0]


def _checked(condition: Filter) -> tuple[Filter, int]:
    """A filter in normal form, and its number of conditions."""
    try:
        nodes = check(condition)
        return normal(typed(condition)), nodes
    except ValueError as error:
        raise BadRequest(str(error)) from error


def in_collection(condition: Filter, name: str) -> Filter:
    """A filter in normal form, of one collection only. Not cached: filters with 1.0 and with True are equal."""
    return conjunction(condition, Eq("collection", name))


def in_other_collections(condition: Filter, names: tuple[str, ...]) -> Filter:
    """A filter in normal form, without these collections."""
    return conjunction(condition, normal(Not(In("collection", names))))


@lru_cache(maxsize=4_096)
def _in_collections(scope: Scope, viewer: Viewer, collections: tuple[str, ...], excluded: tuple[str, ...]) -> Filter:
    """What a request without a filter of its own may return: all but ``excluded`` if no collection is named."""
    searched = In("collection", collections) if collections else Not(In("collection", excluded))
    return normal(And((access_filter(scope, viewer), searched)))
