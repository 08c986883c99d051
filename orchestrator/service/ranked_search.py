"""Searches the sources for a plan and ranks what they return, until its page is full."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.ports import Snapshot
from adapters.ports.graph import CentralityReader
from cache import CacheMode
from fusion.columns import Candidates
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import AllSourcesFailed, Ranked, Retrieved
from orchestrator.planning.plan import Plan, RankingPlan
from orchestrator.ranking.boost_inputs import boost_columns
from orchestrator.ranking.rank import apply_boosts, apply_collapse, apply_confidence, fuse
from orchestrator.results.same_url import collapse_urls
from orchestrator.retrieval.crowds import with_further, without_crowds
from orchestrator.retrieval.listing import listed
from orchestrator.retrieval.retrieve import Retrieval
from orchestrator.schema.search import Degraded

_MAX_SEARCHES = 4
"""Searches for one page, if the chunks of a few documents are all that was found."""


@dataclass(frozen=True, slots=True)
class RankedSearch:
    """The stages from a plan to the order of its hits."""

    retrieval: Retrieval
    centralities: CentralityReader

    async def run(
        self, plan: Plan, mode: CacheMode, snapshot: Snapshot, context: SearchContext, timeout_s: float
    ) -> tuple[Retrieved, Ranked, list[Degraded]]:
        """The rankings of the sources, the documents in their final order, and the stages that failed.

        :param timeout_s: of all sources together.
        :raises AllSourcesFailed: if every source failed.
        """
        with context.timings.stage("gather"):
            if plan.listing:
                return *await listed(plan, plan.listing.sort, snapshot, context, timeout_s), []
            retrieved = await self.retrieval.retrieve(plan.ranking, mode, snapshot, context, timeout_s)
        ranked, failures = await self._ranked(plan.ranking, retrieved, snapshot, context)
        return await self._filled(plan, retrieved, ranked, failures, snapshot, timeout_s, mode, context)

    async def _ranked(
        self, plan: RankingPlan, retrieved: Retrieved, snapshot: Snapshot, context: SearchContext
    ) -> tuple[Ranked, list[Degraded]]:
        """What was retrieved in its final order, and the stages that failed."""
        timings, sources = context.timings, self.retrieval.sources
        with timings.stage("fuse"):
            fused = fuse(plan, Candidates.of(retrieved.rankings), sources, self.retrieval.strategies)
            failures = [context.degraded("fusion", fused.warning)] if fused.warning else []
        with timings.stage("boost"):
            factors, failed = await boost_columns(plan, fused, sources, self.centralities, snapshot, context)
            boosted = apply_boosts(fused, factors, sources, retrieved.first_docs)
        with timings.stage("collapse"):
            ranked = apply_collapse(plan, fused, boosted, factors)
            if plan.collapse == "url":
                ranked = await collapse_urls(plan, ranked, snapshot, context)
            ranked = apply_confidence(plan, ranked, sources)
        return ranked, [*failures, *failed]

    async def _filled(
        self,
        plan: Plan,
        retrieved: Retrieved,
        ranked: Ranked,
        failures: list[Degraded],
        snapshot: Snapshot,
        timeout_s: float,
        mode: CacheMode,
        context: SearchContext,
    ) -> tuple[Retrieved, Ranked, list[Degraded]]:
        """The same with enough documents for the page, if there are so many: the chunks of a few may be all that was
        found. Then it is searched again without these, a few times."""
        wanted = plan.page.offset + plan.page.limit + 1  # one more shows that there is a next page
        more = retrieved
        for searched in range(1, _MAX_SEARCHES + 1):
            is_full = len(ranked.rows) >= wanted or len(ranked.unsure)
            if is_full or more.is_exhausted(plan.ranking.depth):
                break
            narrowed = without_crowds(plan.ranking, ranked)
            if narrowed is None:
                break
            if searched == _MAX_SEARCHES:
                reason = f"after {searched} searches that leave out documents with many chunks, the page is not full"
                failures = [*failures, context.degraded("collapse", reason)]
                break
            with context.timings.stage("gather"):
                try:
                    more = await self.retrieval.retrieve(narrowed, mode, snapshot, context, timeout_s)
                except AllSourcesFailed as error:
                    reason = f"the page is not full: {error}"
                    failures = [*failures, context.degraded("collapse", reason)]
                    break
            retrieved = with_further(retrieved, more)
            ranked, failures = await self._ranked(plan.ranking, retrieved, snapshot, context)
        return retrieved, ranked, failures
