"""The reranker: a model that reads the best hits and orders them, if it responds in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from adapters import SENSITIVITIES
from adapters.ports import Reranker, RerankResult
from orchestrator.execution.budget import RERANK
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Page, RerankOutcome
from orchestrator.planning.plan import Plan, RerankPlan
from orchestrator.schema.hits import RerankedHit, SearchHit
from orchestrator.schema.search import Degraded


@dataclass(frozen=True, slots=True)
class RerankStage:
    """The reranker that the settings name, and its time limit in seconds."""

    reranker: Reranker | None
    timeout_s: float

    async def run(self, plan: Plan, page: Page, context: SearchContext) -> tuple[Page, list[Degraded]]:
        """The page in the order of the reranker, cut to the limit. A failure is reported, and the order stays.

        Only the hits that the reranker gets change places. Those that it does not rank follow those that it ranks, in
        their old order.
        """
        settings = plan.page.rerank
        if settings is None:
            return page, []
        degraded: list[Degraded] = []
        hits, outcome = list(page.hits), RerankOutcome("empty", "no hit may be reranked")
        if self.reranker is None:
            degraded.append(context.degraded("rerank", "no reranker is configured: set TRIVIUM_RERANKER"))
        elif positions := _sendable(page, settings):
            length = min(settings.max_chars, settings.max_total_chars // len(positions))
            passages = [_passage(hits[position], length) for position in positions]
            async with context.best_effort("rerank", RERANK, self.timeout_s) as attempt:
                result = await self.reranker.rerank(plan.ranking.text, passages)
                if result.warning:
                    degraded.append(context.degraded("rerank", result.warning))
                hits, outcome = _reordered(page.hits, positions, result), RerankOutcome("used")
            degraded += attempt.failures
        if degraded and outcome.outcome != "used":
            outcome = RerankOutcome("failed", degraded[-1].reason)
        return replace(page, hits=tuple(hits[: plan.page.limit]), rerank=outcome), degraded


def _sendable(page: Page, settings: RerankPlan) -> list[int]:
    """Positions of the hits that the reranker gets."""
    highest = SENSITIVITIES.index(settings.clearance)
    best = enumerate(page.sensitivities[: settings.max_hits])
    return [position for position, sensitivity in best if SENSITIVITIES.index(sensitivity) <= highest]


def _reordered(hits: Sequence[SearchHit], positions: Sequence[int], result: RerankResult) -> list[SearchHit]:
    """The hits with those at ``positions`` in the order of the reranker."""
    ranked = set(result.order)
    unranked = [index for index in range(len(positions)) if index not in ranked]
    reordered = list(hits)
    for rank, (position, index) in enumerate(zip(positions, [*result.order, *unranked], strict=True), start=1):
        reranked = RerankedHit(rank, result.scores.get(index)) if index in ranked else msgspec.UNSET
        reordered[position] = msgspec.structs.replace(hits[positions[index]], rerank=reranked)
    return reordered


def _passage(hit: SearchHit, length: int) -> str:
    return f"{hit.title}\n{hit.text}"[:length] if hit.title else hit.text[:length]
