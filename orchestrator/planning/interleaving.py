"""Which requests get the hits of two profiles in turn, and the plan of the other profile."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cache import hash_key
from orchestrator.planning.plan import Plan
from orchestrator.schema.search import ProfileName, SearchRequest

_HASH_VALUES = 2**64
_MIXED = ("none", "parent")
"""Ways to collapse whose groups are known from the ids of a hit and of its parent."""


def with_other_plan(
    request: SearchRequest, plan: Plan, chosen: tuple[ProfileName, float], make: Callable[[SearchRequest], Plan]
) -> Plan:
    """The plan of a request; with that of another profile if its hits are those of two profiles in turn.

    The query and its scope decide, so equal requests have equal responses, from a cache too, and pages continue each
    other. What one ranking alone can have is never mixed: an explanation, a text for a prompt, a budget of tokens, a
    reranker, a minimum score, and a ranking that the request chooses.

    :param chosen: the profile and the share of the queries that the settings have.
    :param make: makes the plan of a request.
    """
    profile, share = chosen
    is_ranked = plan.listing is None and plan.like is None and len(plan.ranking.sources) > 1
    is_of_settings = request.profile is None and request.fusion is None and not request.weights
    is_whole = not request.explain and request.format == "hits" and request.max_tokens is None and not request.min_score
    if not (is_ranked and is_of_settings and is_whole) or plan.ranking.collapse not in _MIXED:
        return plan
    if _coin(plan, 0) >= share:
        return plan
    other = make(msgspec.structs.replace(request, profile=profile, cursor=None))  # a cursor is of one ranking
    ranking = msgspec.structs.replace(other.ranking, day=plan.ranking.day)
    if plan.page.rerank or other.page.rerank or ranking == plan.ranking:
        return plan
    return msgspec.structs.replace(plan, other=msgspec.structs.replace(other, ranking=ranking, page=plan.page))


def begins(plan: Plan, number: int) -> bool:
    """Whether the profile of the settings begins a round of the draft, by its number from 0."""
    return _coin(plan, number + 1) < 0.5


def _coin(plan: Plan, toss: int) -> float:
    """A number in [0, 1) that depends on the query and its scope, and on the number of the toss."""
    scope = plan.ranking.scope
    hashed = hash_key("interleaving", scope.tenant, scope.environment, plan.ranking.text, toss)
    return int.from_bytes(hashed[:8], "big") / _HASH_VALUES
