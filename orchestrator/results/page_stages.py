"""What is done with the hits of a page, one optional stage after the other."""

from __future__ import annotations

from dataclasses import replace

from adapters.ports import Snapshot
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Page
from orchestrator.planning.plan import Plan
from orchestrator.results.hit_fields import with_text
from orchestrator.results.neighbors import add_neighbors, has_chunks
from orchestrator.results.rerank import RerankStage
from orchestrator.results.text_limit import limit_text
from orchestrator.schema.search import Degraded


async def finished(
    plan: Plan, page: Page, rerank: RerankStage, snapshot: Snapshot, context: SearchContext
) -> tuple[Page, list[Degraded]]:
    """The page as the caller gets it: reranked, with neighbours, and with no more text than allowed or asked for."""
    degraded: list[Degraded] = []
    if plan.page.rerank:
        with context.timings.stage("rerank"):
            page, failures = await rerank.run(plan, page, context)
            degraded += failures
    if has_chunks(page):
        with context.timings.stage("neighbors"):
            page, failures = await add_neighbors(plan, page, snapshot, context)
            degraded += failures
    hits, cut = limit_text(page.hits)
    if cut:
        degraded.append(context.degraded("response", cut))
    if (chars := plan.page.text_chars) is not None:
        hits = tuple(with_text(hit, chars) for hit in hits)
    return replace(page, hits=hits), degraded
