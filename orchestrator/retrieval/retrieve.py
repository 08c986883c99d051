"""Searches the sources of a plan: all at once, or in two stages if the strategy has seeds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from time import perf_counter

from msgspec.structs import replace

from adapters import AdapterError, Rejected, Warming
from adapters.ports import Snapshot, SourceQuery
from cache import CacheMode
from fusion.columns import Candidates, Documents, Ranking
from fusion.source import Source, Sources
from fusion.strategy import SeededStrategy
from orchestrator.execution.budget import ENTITY_LOOKUP, FIRST_STAGE, Deadline
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import AllSourcesFailed, Answered, Failed, Outcome, Retrieved, logged_reason
from orchestrator.planning.plan import CallPlan, RankingPlan
from orchestrator.planning.strategies import NAMED, Strategies
from orchestrator.retrieval.circuit_breakers import CircuitBreakers
from orchestrator.retrieval.collections import CollectionSplitter
from orchestrator.retrieval.deadline_tasks import DeadlineTasks
from orchestrator.retrieval.memo import MemoizedRetriever
from orchestrator.retrieval.query_preparation import PreparedParts, QueryPreparation
from orchestrator.retrieval.source_call import SourceCall, search_at_once, search_in_turn
from orchestrator.schema.search import Degraded

_log = logging.getLogger(__name__)


class Retrieval:
    """The sources, and what is needed to search them."""

    def __init__(
        self,
        calls: Mapping[str, SourceCall],
        preparation: QueryPreparation,
        breakers: CircuitBreakers,
        collections: CollectionSplitter,
        strategies: Strategies = NAMED,
    ) -> None:
        self.preparation = preparation
        self.sources: Sources = {name: call.source for name, call in calls.items()}
        self.calls = calls
        self.breakers = breakers
        self.strategies = strategies
        self.tasks = DeadlineTasks()
        self._collections = collections

    async def retrieve(
        self, plan: RankingPlan, mode: CacheMode, snapshot: Snapshot, context: SearchContext, timeout_s: float
    ) -> Retrieved:
        """Search the sources of a plan.

        :param timeout_s: of all sources together.
        :raises AllSourcesFailed: if every source failed.
        """
        plan, degraded = await self._collections.split(plan, self.sources, snapshot, context, mode)
        deadline = context.deadline.within(1.0, timeout_s)
        search = _PlanSearch(self, plan, mode, snapshot, context)
        _, seeded = self.strategies.find(plan.strategy)
        if seeded is None or all(call.stage == 1 for call in plan.calls):
            outcomes = await search.stage(plan.calls, deadline)
        else:
            outcomes = await search.two_stages(seeded, deadline)
        return _retrieved(outcomes, search.prepared, degraded)

    def with_own_breakers(self) -> Retrieval:
        """The same sources, whose failures are counted apart from those here."""
        return Retrieval(self.calls, self.preparation, self.breakers.closed(), self._collections, self.strategies)

    def with_strategies(self, strategies: Strategies) -> Retrieval:
        """The same sources and breakers with other strategies."""
        return Retrieval(self.calls, self.preparation, self.breakers, self._collections, strategies)

    def described(self, name: str) -> Source:
        """The description of a source."""
        return self.calls[name].source


class _PlanSearch:
    """The searches of one request."""

    def __init__(
        self, retrieval: Retrieval, plan: RankingPlan, mode: CacheMode, snapshot: Snapshot, context: SearchContext
    ) -> None:
        self.prepared = PreparedParts()
        self._retrieval = retrieval
        self._plan = plan
        self._mode: CacheMode = mode
        self._context = context
        self._query = SourceQuery(
            plan.text,
            plan.depth,
            plan.scope,
            plan.access,
            plan.filter,
            hops=plan.hops,
            seeds=Documents.of_ids(plan.seeds) if plan.seeds else None,
            snapshot=snapshot,
        )

    async def stage(
        self, calls: Sequence[CallPlan], deadline: Deadline, seeds: Documents | None = None
    ) -> dict[str, Outcome]:
        """Search some sources at once; the outcome of each, in the order of ``calls``.

        A source that may wait is searched in a task, under a deadline and a circuit breaker. Those that do not wait are
        searched here, while the others wait. They block the event loop, so an iteration of the loop comes before them,
        in which requests that have arrived are queued or rejected.
        """
        query = self._query if seeds is None else replace(self._query, seeds=seeds)
        breakers, timeout_s = self._retrieval.breakers, deadline.remaining_s()
        waiting = {call.source: call for call in calls if self._may_wait(call)}
        allowed, outcomes = breakers.split(waiting) if waiting else ([], {})
        try:
            with self._retrieval.tasks.started(
                {source: self._search(waiting[source], query, timeout_s) for source in allowed}, timeout_s
            ) as tasks:
                await asyncio.sleep(0)
                for call in calls:
                    if call.source not in waiting:
                        outcomes[call.source] = await self._search(call, query, timeout_s)
                searched = await tasks.outcomes()
        except BaseException:
            breakers.abandon(allowed)
            raise
        breakers.record(searched)
        outcomes |= searched
        return {call.source: outcomes[call.source] for call in calls}

    def _may_wait(self, call_plan: CallPlan) -> bool:
        call = self._retrieval.calls[call_plan.source]
        return call.waits or self._retrieval.preparation.may_wait(call.source, self._plan)

    async def _search(self, call_plan: CallPlan, query: SourceQuery, timeout_s: float) -> Outcome:
        """The outcome of one source: its ranking, or its failure."""
        call, preparation = self._retrieval.calls[call_plan.source], self._retrieval.preparation
        source, start = call.source, perf_counter()
        try:
            if source.needs:
                query = await preparation.prepare(query, source, self._plan, self._context, timeout_s, self.prepared)
            with self._context.timings.stage(source.name):
                queries = [query if each is query.filter else replace(query, filter=each) for each in call_plan.filters]
                if isinstance(call.retriever, MemoizedRetriever):
                    return Answered(await search_at_once(call.retriever, queries, self._mode))
                return Answered(await search_in_turn(call.retriever, queries))
        except AdapterError as error:
            is_blameless = isinstance(error, Rejected | Warming)
            reason = logged_reason(source.name, error)
            return Failed(source.name, reason, (perf_counter() - start) * 1_000, is_blameless=is_blameless)
        except Exception:
            # A defect in one adapter must not fail the other sources; the log has the trace.
            _log.exception("the %s source raised an unexpected error", source.name)
            return Failed(source.name, "internal error", (perf_counter() - start) * 1_000)

    async def two_stages(self, strategy: SeededStrategy, deadline: Deadline) -> dict[str, Outcome]:
        """Search stage 1, then stage 2 from its seeds, unless it can be skipped."""
        first = [call for call in self._plan.calls if call.stage == 1]
        second = [call for call in self._plan.calls if call.stage == 2]
        outcomes = await self.stage(first, deadline.within(FIRST_STAGE))
        rankings = [outcome.ranking for outcome in outcomes.values() if isinstance(outcome, Answered)]
        may_skip = self._plan.may_skip_stage_2 and same_top_document(rankings)
        if may_skip and not await self._mentions_entity(second, deadline.within(ENTITY_LOOKUP).remaining_s()):
            return outcomes
        outcomes |= await self.stage(second, deadline, self._seeds(strategy, rankings))
        return {call.source: outcomes[call.source] for call in self._plan.calls}

    async def _mentions_entity(self, calls: Sequence[CallPlan], timeout_s: float) -> bool:
        """Whether the query mentions an entity. If the lookup fails, stage 2 runs."""
        entity_sources = [lookup for call in calls if (lookup := self._retrieval.calls[call.source].entities)]
        if not entity_sources:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                for lookup in entity_sources:
                    if await lookup.mentions_entity(self._query):
                        return True
        except (TimeoutError, AdapterError):
            return True
        except Exception:
            # A defect in one adapter must not fail the other sources; the log has the trace.
            _log.exception("looking up the entities of a query raised an unexpected error")
            return True
        return False

    def _seeds(self, strategy: SeededStrategy, rankings: Sequence[Ranking]) -> Documents:
        """The seeds of stage 2, after those of the plan; no others if the strategy fails."""
        candidates = Candidates.of(rankings)
        try:
            rows = strategy.seeds(candidates, self._plan.weights, self._retrieval.sources)
        except Exception:
            _log.exception("%s failed to choose seeds", strategy)
            self.prepared.degraded.append(self._context.degraded("fusion", f"{strategy} failed to choose seeds"))
            return Documents.of_ids(self._plan.seeds)
        found = candidates.documents(rows)
        return Documents.of_ids((*self._plan.seeds, *found.ids)) if self._plan.seeds else found


def same_top_document(rankings: Sequence[Ranking]) -> bool:
    """Whether there are several rankings, and all have the same document first."""
    if len(rankings) < 2 or not all(len(ranking) for ranking in rankings):
        return False
    return len({ranking.table.ids(ranking.docs[:1])[0] for ranking in rankings}) == 1


def _retrieved(outcomes: Mapping[str, Outcome], prepared: PreparedParts, degraded: Sequence[Degraded]) -> Retrieved:
    failures = tuple(outcome for outcome in outcomes.values() if isinstance(outcome, Failed))
    rankings = tuple(outcome.ranking for outcome in outcomes.values() if isinstance(outcome, Answered))
    if not rankings:
        raise AllSourcesFailed(failures)
    return Retrieved(
        rankings=rankings,
        searched=tuple(outcomes),
        encoder=prepared.encoder or "none",
        expansions=prepared.expansions,
        degraded=(
            *prepared.degraded,
            *degraded,
            *(Degraded(failed.source, failed.reason, failed.after_ms) for failed in failures),
        ),
    )
