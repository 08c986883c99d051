"""Which requests get the hits of two profiles in turn, and the plan of the other profile."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cache import hash_key
from orchestrator.planning.plan import Plan
from orchestrator.schema.search import ProfileName, SearchRequest

_HASH_VALUES = 2**64


def with_other_plan(
    request: SearchRequest,
    plan: Plan,
    chosen: tuple[ProfileName, float] | None,
    make: Callable[[SearchRequest], Plan],
) -> Plan:
    """The plan of a request; with that of another profile if its hits are those of two profiles in turn.

    The query decides, so equal requests have equal responses, and all callers of a tenant get the same. An explanation,
    and a text for a prompt, are of one ranking.

    :param chosen: the profile and the share of the queries that the settings have.
    :param make: makes the plan of a request.
    """
    if chosen is None or plan.listing or plan.like or len(plan.ranking.sources) < 2:
        return plan
    names_one = request.profile is not None or request.fusion is not None
    if names_one or request.explain or request.format != "hits" or request.max_tokens is not None:
        return plan
    profile, share = chosen
    if profile == plan.profile or _coin(plan, 0) >= share:
        return plan
    other = make(msgspec.structs.replace(request, profile=profile, cursor=None))  # a cursor is of one ranking
    ranking = msgspec.structs.replace(other.ranking, day=plan.ranking.day)  # that of the first page
    return msgspec.structs.replace(plan, other=msgspec.structs.replace(other, ranking=ranking))


def begins(plan: Plan, number: int) -> bool:
    """Whether the profile of the settings begins a round, by its number from 0."""
    return _coin(plan, number + 1) < 0.5


def from_first_hit(plan: Plan, end: int) -> Plan:
    """The same plan with a page of the first ``end`` hits."""
    return msgspec.structs.replace(plan, page=msgspec.structs.replace(plan.page, offset=0, limit=end), other=None)


def _coin(plan: Plan, toss: int) -> float:
    """A number in [0, 1) that depends on the query and its scope, and on the number of the toss."""
    scope = plan.ranking.scope
    hashed = hash_key("interleaving", scope.tenant, scope.environment, plan.ranking.text, toss)
    return int.from_bytes(hashed[:8], "big") / _HASH_VALUES
