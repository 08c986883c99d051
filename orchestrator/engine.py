"""One query, from the request to the answer, in the order in which it happens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import time
from typing import Protocol, assert_never

import anyio
from msgspec import UNSET, UnsetType

from adapters import AdapterError, DocumentReader, Priors, Record, Scope
from cache import key
from fusion import Boosted, Concatenate, DocId, Facts, Fused, Ranking, boost, collapse
from orchestrator.caller import Caller
from orchestrator.contract import Degraded, Explanation, Route, SearchHit, SearchRequest, SearchResponse
from orchestrator.cursor import BYTES, Cursor
from orchestrator.explain import explain
from orchestrator.hydrate import Hydrated, hydrate
from orchestrator.neighbors import widen
from orchestrator.outcome import AllSourcesFailed, Answered, Failed, Outcome
from orchestrator.plan import Plan, plan
from orchestrator.priors import factors
from orchestrator.request import Request, told
from orchestrator.rerank import Reranking
from orchestrator.roads import Roads
from orchestrator.settings import Settings
from orchestrator.timing import Stopwatch

_log = logging.getLogger(__name__)

_ATTEMPTS = 4
"""Times that a page is filled up, at most: who returns nothing but what may not leave is not asked for ever."""


class Index(Protocol):
    """What an answer says of the stores that it came from."""

    @property
    def index_version(self) -> str:
        """Identity of the encoder and the analysers."""
        ...

    def generation(self) -> int:
        """Grows with every acknowledged write."""
        ...


@dataclass
class Engine:
    """The search. Nothing of a request outlives the request.

    :param guard: in [0, 1], how far the graph of a scope can be trusted.
    :param mismatches: by source or store, how it was built, where that is not what the settings say.
    :param waiting: how many requests wait to be asked here.
    :param now: seconds since the epoch.
    """

    settings: Settings
    roads: Roads
    documents: DocumentReader
    priors: Priors
    index: Index
    reranking: Reranking
    guard: Callable[[Scope], float] = lambda _: 1.0
    mismatches: Callable[[], Mapping[str, str]] = dict
    waiting: Callable[[], int] = lambda: 0
    now: Callable[[], float] = time
    in_flight: int = field(default=0, init=False)

    def under(self, settings: Settings) -> Engine:
        """The same sources under other settings of routing, fusion and boosts."""
        return replace(self, settings=settings)

    async def search(self, asked: SearchRequest, caller: Caller, request_id: str) -> SearchResponse:
        """Answer one request.

        :raises BadRequest: if it asks for what is not allowed.
        :raises AllSourcesFailed: if no source that was asked answered in time.
        """
        self.in_flight += 1
        try:
            return await self._search(asked, caller, request_id)
        finally:
            self.in_flight -= 1

    async def _search(self, asked: SearchRequest, caller: Caller, request_id: str) -> SearchResponse:
        watch = Stopwatch()
        with watch.stage("plan"):
            dimension = self.roads.encoding.dimension
            decided = plan(asked, caller, self.settings, dimension, self.now(), self.guard(caller.scope))
            request = Request(decided, asked.timeout_ms / 1_000, self.in_flight + self.waiting(), watch)
            generation = self.index.generation()
            first = _start(request, generation)
            for store, reason in self.mismatches().items():
                request.degrade(store, reason)
        with watch.stage("gather"):
            outcomes = await self.roads.ask(request)
            rankings = _answers(outcomes, request)
        with watch.stage("fuse"):
            fused = _fuse(rankings, request)
            kept = fused.above(decided.min_score)
        with watch.stage("boost"):
            facts = _facts(rankings)
            boosted = boost(kept, await factors(request, kept, facts, self.priors, self.settings))
            basis = _basis(request, rankings, boosted, self.settings)
        with watch.stage("collapse"):
            collapsed = collapse(boosted.ids, facts, decided.collapse, decided.radius)
            wanted = max(decided.limit, self.reranking.top) if decided.rerank else decided.limit
        with watch.stage("hydrate"):
            hydrated, end = await self._page(fused, boosted, collapsed.ids, first, wanted, request)
        hits = await self._read(hydrated, request)
        explanation: Explanation | UnsetType = UNSET
        if asked.explain:
            async with request.optional("explain"):
                below = fused.ids[len(kept.ids) :]
                explanation = await explain(request, rankings, below, collapsed, hydrated, self.documents)
        return SearchResponse(
            hits=hits,
            mode=asked.mode,
            route=_route(decided, tuple(outcomes)),
            degraded=tuple(request.degraded),
            index_version=self.index.index_version,
            generation=generation,
            cache="miss",
            took_ms=watch.total_ms(),
            timings_ms=watch.stages,
            request_id=request_id,
            next_cursor=_next(request, basis, generation, end, len(collapsed.ids)),
            explain=explanation,
        )

    async def _page(
        self, fused: Fused, boosted: Boosted, ids: Sequence[DocId], first: int, wanted: int, request: Request
    ) -> tuple[Hydrated, int]:
        """The ``wanted`` hits from the place ``first`` on, and the place after them.

        What was deleted meanwhile, or may not leave, is made up for by what comes next.
        """
        decided = request.plan
        done = Hydrated()
        end = first
        for _ in range(_ATTEMPTS):
            part = ids[end : end + wanted - len(done.hits)]
            if not part:
                break
            end += len(part)
            records = await self._fetch(part, request)
            done += hydrate(fused.hits(part), boosted, records, decided.query.filter, decided.radius)
        return done, end

    async def _read(self, hydrated: Hydrated, request: Request) -> tuple[SearchHit, ...]:
        """The hits as the request wants them read: by whom, and with what around them."""
        decided, hits = request.plan, hydrated.hits
        if decided.rerank:
            with request.watch.stage("rerank"):
                ordered = await self.reranking.order(hits, hydrated.sensitivities, request)
                hits = tuple(ordered[: decided.limit])
        if decided.neighbors:
            with request.watch.stage("neighbors"):
                async with request.optional("neighbors"):
                    hits = await widen(hits, decided.neighbors, decided.query.access, self.documents)
        return hits

    async def _fetch(self, ids: Sequence[DocId], request: Request) -> Mapping[DocId, Record]:
        """The documents. Without them there is no answer: neither their text nor the check of who may read it."""
        try:
            with anyio.fail_after(request.left_s()):
                return await self.documents.fetch(request.plan.query.scope, ids)
        except (TimeoutError, AdapterError) as error:
            raise AllSourcesFailed((Failed("documents", told(error), request.watch.total_ms()),)) from error


def _start(request: Request, generation: int) -> int:
    """Where the page begins, from 0."""
    cursor = request.plan.cursor
    if cursor is None:
        return 0
    if cursor.generation != generation:
        request.degrade("cursor", "documents were written since the first page: hits may come twice or not at all")
    return cursor.offset


def _basis(request: Request, rankings: Sequence[Ranking], boosted: Boosted, settings: Settings) -> bytes:
    """Who answered and how that was put together; what differs from the first page is told."""
    basis = key(
        [ranking.source for ranking in rankings],
        request.fused_by,
        sorted(request.plan.weights.items()),
        sorted(boosted.factors),
        (settings.centrality_weight, settings.relationship_weight, request.plan.radius),
        request.expansions,
    )[:BYTES]
    before = request.plan.cursor
    if before and before.basis != basis:
        request.degrade("cursor", "the first page was made otherwise: hits may come twice or not at all")
    return before.basis if before else basis


def _next(request: Request, basis: bytes, generation: int, offset: int, count: int) -> str | None:
    """Where the next page begins, if there is one. There is none of what a reranker ordered."""
    decided, before = request.plan, request.plan.cursor
    if offset >= count or decided.rerank:
        return None
    since = before.generation if before else generation
    return str(Cursor.at(offset, decided.request, basis, since, decided.query.depth, decided.day, request.encoder))


def _route(decided: Plan, asked: tuple[str, ...]) -> Route:
    """Who was asked, and why; with why not, if a source that was planned was not."""
    if asked == decided.sources:
        return Route(asked, decided.reason)
    left = " and ".join(source for source in decided.sources if source not in asked)
    return Route(asked, f"{decided.reason}; it names nothing and the others agree, so {left} was not asked")


def _answers(outcomes: Mapping[str, Outcome], request: Request) -> list[Ranking]:
    """The rankings that came; what did not come is noted as degraded."""
    rankings: list[Ranking] = []
    failures: list[Failed] = []
    for outcome in outcomes.values():
        match outcome:
            case Answered(ranking):
                rankings.append(ranking)
            case Failed():
                failures.append(outcome)
            case _:
                assert_never(outcome)
    if not rankings:
        raise AllSourcesFailed(tuple(failures))
    request.degraded += [Degraded(failed.source, failed.reason, failed.after_ms) for failed in failures]
    return rankings


def _fuse(rankings: Sequence[Ranking], request: Request) -> Fused:
    """Fuse as planned; if that fails, put the rankings behind one another, and say so."""
    chosen = request.plan
    request.fused_by = str(chosen.strategy)
    try:
        return chosen.strategy(rankings, chosen.weights)
    except Exception:
        _log.exception("fusion by %s failed", chosen.strategy)
        fallback = Concatenate()
        request.degrade("fusion", f"{chosen.strategy} failed, {fallback} was used")
        request.fused_by = str(fallback)
        return fallback(rankings, chosen.weights)


def _facts(rankings: Sequence[Ranking]) -> dict[DocId, Facts]:
    """What the sources told of the documents that they found."""
    return {id_: facts for ranking in rankings for id_, facts in ranking.facts.items()}
