"""Computes a response with the hits of two profiles in turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import msgspec

from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.planning.interleaving import begins, from_first_hit
from orchestrator.planning.plan import Plan
from orchestrator.results.interleaving import HIT_KEYS, team_draft
from orchestrator.schema.search import ResponseBody, Total
from orchestrator.telemetry.spans import StageTimings


class RankedBody(NamedTuple):
    """The body of a response of one ranking, and the token of the page that begins after a number of hits."""

    body: ResponseBody
    cursor_at: Callable[[int], str]


async def interleaved_body(
    plan: Plan, other: Plan, context: SearchContext, body_of: Callable[[Plan, SearchContext], Awaitable[RankedBody]]
) -> ResponseBody:
    """The body of a plan, mixed with that of another one. If the other one fails, the hits are those of the plan.

    :param body_of: runs all stages of a plan.
    :raises AllSourcesFailed: if every source of the plan failed.
    """
    end = plan.page.offset + plan.page.limit
    body, cursor_at = await body_of(from_first_hit(plan, end), context)
    with context.timings.stage("interleave"):
        try:
            second, _ = await body_of(from_first_hit(other, end), SearchContext(context.deadline, StageTimings()))
        except AllSourcesFailed as error:
            reason = str(error)
        else:
            reason = "; ".join(f"{each.source}: {each.reason}" for each in second.degraded)
            if second.generation != body.generation:
                reason = "documents were written meanwhile"
    if reason:
        failed = context.degraded("interleave", f"the hits are of one profile: {reason}")
        return msgspec.structs.replace(body, hits=body.hits[plan.page.offset :], degraded=(*body.degraded, failed))
    hits = team_draft(body.hits, second.hits, partial(begins, plan), HIT_KEYS[plan.ranking.collapse])
    page = hits[plan.page.offset : end]
    # The first ranking may be at its end, and hits of it after this page, because others came between them.
    has_more = body.next_cursor is not None or (len(hits) > end and not plan.page.rerank)
    return msgspec.structs.replace(
        body,
        hits=tuple(hit for hit, _ in page),
        total=Total(body.total.value, "gte"),  # every hit of the first ranking, and some of the second one
        profiles=tuple(plan.profile if is_first else other.profile for _, is_first in page),
        next_cursor=cursor_at(end) if has_more else None,
    )
