"""What is done with the hits of a page, one optional stage after the other."""

from __future__ import annotations

from dataclasses import replace

import anyio.to_thread

from adapters.ports import Snapshot
from orchestrator.execution.budget import CONTEXT
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Page
from orchestrator.planning.plan import Plan
from orchestrator.results.context_text import as_context, within_tokens
from orchestrator.results.hit_fields import with_text
from orchestrator.results.neighbors import add_neighbors, has_chunks
from orchestrator.results.rerank import RerankStage
from orchestrator.results.text_limit import limit_text
from orchestrator.results.tokens import Measure
from orchestrator.schema.hits import ContextText
from orchestrator.schema.search import Degraded, ResponseFormat


async def finished(
    plan: Plan, page: Page, rerank: RerankStage, measure: Measure, snapshot: Snapshot, context: SearchContext
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
    page = replace(page, hits=hits)
    if plan.page.max_tokens is not None:
        async with context.best_effort("context", CONTEXT) as attempt:
            page = await anyio.to_thread.run_sync(
                _within_tokens, page, plan.page.format, plan.page.max_tokens, measure, abandon_on_cancel=True
            )
        if attempt.failures:
            page = _without_texts(page, plan.page.format)
            degraded += attempt.failures
    return page, degraded


def _without_texts(page: Page, format_: ResponseFormat) -> Page:
    if format_ == "context":
        return replace(page, context=ContextText("", 0, 0, cut=True))
    return replace(page, hits=tuple(with_text(hit, 0) for hit in page.hits))


def _within_tokens(page: Page, format_: ResponseFormat, max_tokens: int, measure: Measure) -> Page:
    if format_ == "context":
        return replace(page, context=as_context(page.hits, max_tokens, measure))
    return replace(page, hits=within_tokens(page.hits, max_tokens, measure))
