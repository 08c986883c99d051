"""Processes a query from the request to the response, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_hex
from time import perf_counter, time
from typing import TypeAlias, get_args

import anyio
import anyio.to_thread
import msgspec

from adapters import Scope, Sensitivity
from adapters.ports import Snapshot
from adapters.ports.graph import CentralityReader
from adapters.ports.snapshot import Snapshots
from cache import CacheMode
from fusion.confidence import Calibrations
from fusion.source import Source
from orchestrator.auth.principal import Principal
from orchestrator.execution.budget import EXPLAIN, WRITES, Clock, Deadline, sources_timeout_s
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Ranked, Retrieved
from orchestrator.indexing.data_version import DataVersions
from orchestrator.measurement.calibration import why_unmeasured
from orchestrator.planning.defaults import encoder_of, timeout_ms
from orchestrator.planning.interleaving import with_other_plan
from orchestrator.planning.plan import DAY_S, Plan
from orchestrator.planning.plan_key import cache_key
from orchestrator.planning.planner import MAX_QUERY_CHARS, make_plan
from orchestrator.results.explanation import ExplainStage
from orchestrator.results.facets import count_facets
from orchestrator.results.hit_fields import selected
from orchestrator.results.hydration import hydrate
from orchestrator.results.page_stages import finished
from orchestrator.results.rerank import RerankStage
from orchestrator.results.response_body import page_warning, respond
from orchestrator.results.search_log import log_fields
from orchestrator.results.tokens import Measure
from orchestrator.results.unknown_names import name_warnings, named_keys
from orchestrator.retrieval.likeness import with_likeness
from orchestrator.retrieval.retrieve import Retrieval
from orchestrator.schema.search import Degraded, EncoderName, ResponseBody, ResponseMeta, SearchRequest, SearchResponse
from orchestrator.service.admission import Admission
from orchestrator.service.interleaving import Interleaved, interleaved
from orchestrator.service.plan_cache import PlanCache
from orchestrator.service.ranked_search import RankedSearch
from orchestrator.service.response_cache import EncodedResponse, ResponseCache, with_meta
from orchestrator.settings.groups import Settings
from orchestrator.telemetry.spans import MS_DIGITS, StageTimings

_WRITE_CHECK_S = 0.01
"""Seconds between two checks whether searches show a write."""


Observer: TypeAlias = Callable[[SearchRequest, Principal, str, EncodedResponse], None]
"""Called with a request, its principal, its id, and the response."""


@dataclass
class SearchService:
    """The search. It stores nothing of a request, except in caches.

    :param trust: of a scope, in [0, 1]: the factor on the default weight of the graph.
    :param calibrations: of a scope's confidence, by encoder of the query; empty if it was not measured.
    :param mismatches: indexes of another build than the settings require, or that lack documents, by source.
    :param content_ids: see :func:`orchestrator.planning.plan_key.cache_key`.
    :param build_id: identity of the encoder and analysers that built the index.
    :param embedding_model: the model that encodes the documents.
    :param shows: whether searches show the write of a generation, after reading what other processes have written.
        Blocks.
    :param snippet: of a text and a query, as HTML.
    :param measure: of texts in tokens.
    :param known_keys: metadata keys of a scope, as far as they are known here. Blocks.
    :param observers: called with each response that is not of a batch. They must not wait.
    :param now: seconds since the epoch; ``clock``: of deadlines.
    """

    settings: Settings
    sources: Sequence[Source]
    retrieval: Retrieval
    centralities: CentralityReader
    snapshots: Snapshots
    rerank: RerankStage
    explain: ExplainStage
    data_versions: DataVersions
    cache: ResponseCache
    admission: Admission
    build_id: Callable[[], str]
    embedding_model: str
    snippet: Callable[[str, str], str]
    measure: Measure
    content_ids: Sequence[str] = ()
    trust: Callable[[Scope, Sensitivity], float] = lambda *_: 1.0
    calibrations: Callable[[Scope, Sensitivity, EncoderName], Calibrations] = lambda *_: ()
    mismatches: Callable[[], Mapping[str, str]] = dict
    max_query_chars: int = MAX_QUERY_CHARS
    shows: Callable[[int], bool] = lambda _: True
    known_keys: Callable[[Scope], Collection[str]] = lambda _: ()
    observers: Sequence[Observer] = ()
    now: Callable[[], float] = time
    clock: Clock = perf_counter
    _plans: PlanCache = field(default_factory=PlanCache, init=False)

    def with_settings(self, settings: Settings) -> SearchService:
        """The same sources with other settings of routing, fusion and boosts."""
        return replace(self, settings=settings)

    async def respond(
        self,
        request: SearchRequest,
        principal: Principal,
        request_id: str,
        patience_s: float | None = None,
        *,
        may_mix: bool = False,
    ) -> EncodedResponse:
        """The response as JSON: from the cache, or computed.

        :param may_mix: whether its hits may be those of two profiles in turn: the caller can give feedback.
        :param patience_s: how long a line of a batch waits for its turn; by default that is part of the time limit.
        :raises BadRequest: if a value is not allowed.
        :raises AllSourcesFailed: if every source failed or timed out.
        :raises Overloaded: if the response cannot be computed in time because too many requests are waiting.
        """
        start = self.clock()
        plan, hash_of_plan = self.plan(request, principal, may_mix=may_mix)
        limit_ms = timeout_ms(request, self.settings)
        plan_ms = (self.clock() - start) * 1_000
        missed = await self._wait_for_write(request, limit_ms)
        chosen_mode: CacheMode = "bypass" if missed else request.cache  # a response that says so is of this request
        is_shared = await self.data_versions.ensure_loaded(principal.scope)
        snapshot = self.snapshots.pin(principal.scope)  # once: the cached response is of the data that its key names
        key = cache_key(hash_of_plan, snapshot.data_version, self.build_id(), self.content_ids)
        computed: ResponseBody | None = None
        timings: StageTimings | None = None

        async def compute(recompute: bool) -> ResponseBody:
            nonlocal computed, timings
            # A background refresh has no waiting client and gets the full time limit; a request has used some of it.
            is_refresh = recompute and chosen_mode == "use"
            deadline = Deadline.after(limit_ms / 1_000 - (0 if is_refresh else self.clock() - start), self.clock)
            wait_s, is_batch = patience_s or deadline.remaining_s(), patience_s is not None
            async with self.admission.slot(principal.scope.tenant, wait_s, is_batch=is_batch):
                deadline = Deadline.after(limit_ms / 1_000, self.clock) if is_batch else deadline
                timings = StageTimings()
                timings.record("plan", plan_ms, start)
                mode: CacheMode = "refresh" if is_refresh else chosen_mode
                context = SearchContext(deadline, timings)
                computed = await self._compute(plan, snapshot, limit_ms, mode, context, missed)
            return selected(computed, plan.page)

        body, level = await self.cache.get_or_compute(
            key,
            chosen_mode,
            compute,
            is_shared=is_shared,
            execution=b"%d" % limit_ms if patience_s is None else b"batch %d" % limit_ms,
            would_reject=lambda: self.admission.would_reject(principal.scope.tenant, patience_s or limit_ms / 1_000),
        )
        used = timings if computed else None
        meta = ResponseMeta(
            cache=level,
            timeout_ms=limit_ms,
            took_ms=round((self.clock() - start) * 1_000, MS_DIGITS),
            timings_ms=used.rounded_ms() if used else {},
            request_id=request_id,
            query_id=_query_id(),
        )
        response = EncodedResponse(with_meta(body, meta), meta.query_id, level, plan, limit_ms, computed, used)
        if patience_s is None:
            for observe in self.observers:
                observe(request, principal, request_id, response)
        return response

    async def search(self, request: SearchRequest, principal: Principal, request_id: str) -> SearchResponse:
        """The response as an object, without the response cache and without admission: for commands and evaluation.

        :raises BadRequest: if a value is not allowed.
        :raises AllSourcesFailed: if every source failed or timed out.
        """
        timings = StageTimings()
        limit_ms = timeout_ms(request, self.settings)
        context = SearchContext(Deadline.after(limit_ms / 1_000, self.clock), timings)
        with timings.stage("plan"):
            plan, _ = self.plan(request, principal)
        missed = await self._wait_for_write(request, limit_ms)
        snapshot = self.snapshots.pin(principal.scope)
        body = await self._compute(plan, snapshot, limit_ms, request.cache, context, missed)
        return SearchResponse(
            **msgspec.structs.asdict(selected(body, plan.page)),
            cache="miss",
            timeout_ms=limit_ms,
            took_ms=round(timings.total_ms(), MS_DIGITS),
            timings_ms=timings.rounded_ms(),
            request_id=request_id,
            query_id=_query_id(),
        )

    def plan(self, request: SearchRequest, principal: Principal, *, may_mix: bool = False) -> tuple[Plan, bytes]:
        """The plan of a request, and its hash. Pure, but for the cache of plans.

        :raises BadRequest: if a value is not allowed.
        """
        scope, clearance = principal.scope, principal.clearance
        trust, today = self.trust(scope, clearance), int(self.now() // DAY_S)
        calibrations = self.calibrations(scope, clearance, encoder_of(request, self.settings))

        def made(request: SearchRequest) -> Plan:
            return make_plan(
                request,
                principal,
                self.settings,
                self.sources,
                trust,
                today,
                dimension=self.retrieval.preparation.encoders.dimension,
                encodes_texts=self.retrieval.preparation.encoders.encodes_texts,
                max_query_chars=self.max_query_chars,
                calibrations=lambda encoder: self.calibrations(scope, clearance, encoder),
                strategies=self.retrieval.strategies,
            )

        visible = (scope.tenant, scope.environment, clearance, principal.user, principal.teams)
        others: tuple[object, ...] = (*visible, trust, today, calibrations)
        chosen = self.settings.requests.interleaved if may_mix else None
        if chosen is None:
            return self._plans.get(request, others, lambda: made(request))
        of_both = (self.calibrations(scope, clearance, encoder) for encoder in get_args(EncoderName))
        others = (*others, chosen, *of_both)
        return self._plans.get(request, others, lambda: with_other_plan(request, made(request), chosen, made))

    async def _wait_for_write(self, request: SearchRequest, limit_ms: int) -> str:
        """Wait until searches show the write that a request names. Returns why they do not; empty if they do."""
        if request.min_generation is None:
            return ""
        deadline = Deadline.after(limit_ms / 1_000 * WRITES, self.clock)
        while not await anyio.to_thread.run_sync(self.shows, request.min_generation):
            if self.clock() >= deadline.expires_at:
                return f"generation {request.min_generation} is not in every source after {limit_ms * WRITES:g} ms"
            await anyio.sleep(_WRITE_CHECK_S)  # nothing reports the writes of other processes
        return ""

    async def _compute(
        self, plan: Plan, snapshot: Snapshot, limit_ms: int, mode: CacheMode, context: SearchContext, missed: str
    ) -> ResponseBody:
        """Run all stages on one state of the index. ``missed``: see :meth:`_wait_for_write`."""
        if self.snapshots.changed(snapshot):
            # Servers have no old states: a request that waited for its slot reads what was written meanwhile.
            snapshot = self.snapshots.pin(plan.ranking.scope)
        if plan.like:
            plan = await with_likeness(plan, plan.like, snapshot.documents, context)
        timings, ranking = context.timings, plan.ranking
        # Not in the plan, because it changes no complete response.
        timeout_s = sources_timeout_s(limit_ms, self.settings.sources.timeout_ms)
        degraded = [context.degraded(name, reason) for name, reason in self.mismatches().items()]
        if missed:
            degraded.append(context.degraded("snapshot", missed))
        search = RankedSearch(self.retrieval, self.centralities)
        retrieved, ranked, failures = await search.run(plan, mode, snapshot, context, timeout_s)
        degraded += (*retrieved.degraded, *failures)
        mixed: Interleaved | None = None
        if not degraded:  # a response that is not whole is of one profile
            run = partial(search.run, mode=mode, snapshot=snapshot, context=context, timeout_s=timeout_s)
            mixed, failures = await interleaved(plan, ranked, run, context)
            degraded += failures
        ranked = replace(ranked, mixed_with=mixed.mixed_with) if mixed else ranked
        if ranking.min_confidence and ranked.confidences.answer is None:
            reason = why_unmeasured(self.retrieval.preparation.encoders.encodes_texts)
            degraded.append(context.degraded("confidence", reason))
        with timings.stage("hydrate"):
            read = partial(
                hydrate, snapshot=snapshot, context=context, embedding_model=self.embedding_model, snippet=self.snippet
            )
            page = await (mixed.page(read) if mixed else read(plan, ranked))
        page, failures = await finished(plan, page, self.rerank, self.measure, snapshot, context)
        degraded += failures
        timings.log_fields = log_fields(ranking, retrieved, ranked, page)
        facets, reports = await count_facets(plan, ranked, snapshot, context)
        degraded += reports
        explanation, reports = await self.explain.run(plan, retrieved, ranked, page, snapshot, context)
        degraded += reports
        warnings: tuple[str, ...] = ()
        if plan.collections or named_keys(plan):
            async with context.best_effort("warnings", EXPLAIN) as attempt:
                warnings = await name_warnings(plan, snapshot.documents, self.known_keys)
            degraded += attempt.failures
        degraded += self._state_warnings(plan, retrieved, ranked, snapshot, context)
        return respond(
            plan,
            retrieved,
            ranked,
            page,
            degraded,
            snapshot,
            self.build_id(),
            explanation,
            facets=facets,
            warnings=warnings,
        )

    def _state_warnings(
        self, plan: Plan, retrieved: Retrieved, ranked: Ranked, snapshot: Snapshot, context: SearchContext
    ) -> list[Degraded]:
        """Reports that the ranking changed since the first page, or the documents while the request ran."""
        warnings = []
        if reason := page_warning(plan, retrieved, ranked, snapshot.generation):
            warnings.append(context.degraded("cursor", reason))
        if self.snapshots.changed(snapshot):
            reason = "documents were written during this search: some sources may not have them yet"
            warnings.append(context.degraded("snapshot", reason))
        return warnings


def _query_id() -> str:
    return token_hex(16)  # not to be guessed: who has it may give feedback
