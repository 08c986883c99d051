"""One query, from the request to the answer, in the order in which it happens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol, assert_never

import anyio
from msgspec import UNSET

from adapters import AdapterError, DocumentReader, Priors, Query, Record, Retriever, Scope
from fusion import Concatenate, DocId, FusedHit, Ranking, boost, centrality
from orchestrator.caller import Caller
from orchestrator.contract import Degraded, ExplainedHit, Explanation, Route, SearchRequest, SearchResponse
from orchestrator.encode import Encoding
from orchestrator.gather import Road, agree, gather
from orchestrator.hydrate import hydrate, lock
from orchestrator.outcome import AllSourcesFailed, Answered, Failed, Outcome
from orchestrator.plan import Plan, plan
from orchestrator.settings import Settings
from orchestrator.timing import Stopwatch

_log = logging.getLogger(__name__)

_FIRST_ROUND = 0.6
"""Of the sources' time, what the first of two rounds has at most."""
_NAMES_SHARE = 0.3
"""Of what is left of it then, what the question may take whether the second round is worth it."""


class Index(Protocol):
    """What an answer says of the stores that it came from."""

    @property
    def index_version(self) -> str:
        """Identity of the encoder and the analysers."""
        ...

    def generation(self) -> int:
        """Grows with every acknowledged write."""
        ...


@dataclass(slots=True)
class _Request:
    """One request on its way."""

    plan: Plan
    timeout_s: float
    in_flight: int
    """Requests under way when it came, itself included: what came later is no reason to serve it worse."""
    watch: Stopwatch
    encoder: str = "none"
    degraded: list[Degraded] = field(default_factory=list)

    def left_s(self) -> float:
        """Seconds until its deadline, never quite none: what is ready needs no time to be taken."""
        return max(self.timeout_s - self.watch.total_ms() / 1_000, 0.001)


class Engine:
    """The search. It holds the sources, and nothing of a request outlives the request."""

    def __init__(
        self,
        settings: Settings,
        sources: Mapping[str, Retriever],
        documents: DocumentReader,
        priors: Priors,
        encoding: Encoding,
        index: Index,
        guard: Callable[[Scope], float] = lambda _: 1.0,
    ) -> None:
        self._settings = settings
        self._sources = sources
        self._documents = documents
        self._priors = priors
        self._encoding = encoding
        self._index = index
        self._guard = guard
        self._in_flight = 0

    def under(self, settings: Settings) -> Engine:
        """The same sources under other settings of routing, fusion and boosts."""
        return Engine(settings, self._sources, self._documents, self._priors, self._encoding, self._index, self._guard)

    async def search(self, asked: SearchRequest, caller: Caller, request_id: str) -> SearchResponse:
        """Answer one request.

        :raises BadRequest: if it asks for what is not allowed.
        :raises AllSourcesFailed: if no source that was asked answered in time.
        """
        self._in_flight += 1
        try:
            return await self._search(asked, caller, request_id)
        finally:
            self._in_flight -= 1

    async def _search(self, asked: SearchRequest, caller: Caller, request_id: str) -> SearchResponse:
        watch = Stopwatch()
        with watch.stage("plan"):
            decided = plan(asked, caller, self._settings, self._encoding.dimension, self._guard(caller.scope))
            request = _Request(decided, asked.timeout_ms / 1_000, self._in_flight, watch)
            generation = self._index.generation()
        with watch.stage("gather"):
            outcomes = await self._gather(request)
            asked_of = tuple(outcomes)
            rankings = _answers(outcomes, request)
        with watch.stage("fuse"):
            fused = [hit for hit in _fuse(rankings, request) if hit.fusion_score >= request.plan.min_score]
        with watch.stage("boost"):
            best = boost(fused, await self._factors(fused, request))[: request.plan.limit]
        with watch.stage("hydrate"):
            records = await self._fetch([hit.fused.id for hit in best], request)
            hits, withheld = hydrate(best, records, request.plan.query.filter)
        return SearchResponse(
            hits=hits,
            mode=asked.mode,
            route=_route(request.plan, asked_of),
            degraded=tuple(request.degraded),
            index_version=self._index.index_version,
            generation=generation,
            cache="miss",
            took_ms=watch.total_ms(),
            timings_ms=watch.stages,
            request_id=request_id,
            explain=await self._explain(request, rankings, withheld) if asked.explain else UNSET,
        )

    async def _gather(self, request: _Request) -> dict[str, Outcome]:
        """Ask the sources: all at once, or one after the others if the strategy has it start from what they found."""
        decided, rounds = request.plan, request.plan.rounds
        limit_s = min(decided.timeout_s, request.left_s())
        last = rounds.follows if rounds else None
        roads: dict[str, Road] = {
            each: self._road(each, request, decided.query) for each in decided.sources if each != last
        }
        if rounds is None:
            return await gather(roads, limit_s)
        ends = perf_counter() + limit_s

        def left_s() -> float:
            return ends - perf_counter()

        found = await gather(roads, limit_s * _FIRST_ROUND)
        answered = [outcome.ranking for outcome in found.values() if isinstance(outcome, Answered)]
        if decided.may_stop and agree(answered) and not await self._names(request, left_s() * _NAMES_SHARE):
            return found
        query = replace(decided.query, near=rounds.start(answered, decided.weights))
        road: dict[str, Road] = {rounds.follows: self._road(rounds.follows, request, query)}
        found |= await gather(road, left_s())
        return {source: found[source] for source in decided.sources}

    async def _names(self, request: _Request, timeout_s: float) -> bool:
        """Whether the query names anything. Who cannot say is asked for more: then the answer says what is wrong."""
        try:
            with anyio.fail_after(timeout_s):
                return await self._priors.names(request.plan.query)
        except (TimeoutError, AdapterError):
            return True

    def _road(self, source: str, request: _Request, query: Query) -> Road:
        """How one source is asked. The vector source encodes first: beside the others, not before them."""
        retriever, watch = self._sources[source], request.watch

        async def ask() -> Ranking:
            with watch.stage(source):
                return await retriever.search(query)

        async def encode_and_ask() -> Ranking:
            encoded = await encoding
            request.encoder = encoded.by
            watch.note(f"embed_{encoded.by}", encoded.ms)
            with watch.stage(source):
                return await retriever.search(replace(query, vector=encoded.vector))

        if source == "vector" and query.vector is None:
            encoding = self._encoding.encode(query.text, request.in_flight)
            return encode_and_ask
        return ask

    async def _factors(self, fused: Sequence[FusedHit], request: _Request) -> dict[str, dict[DocId, float]]:
        """What the priors that were asked for make of each document. Without them the fused order stands."""
        if "centrality" not in request.plan.boosts:
            return {}
        try:
            with anyio.fail_after(request.left_s()):
                values = await self._priors.centralities(request.plan.query.scope, [hit.id for hit in fused])
        except (TimeoutError, AdapterError) as error:
            request.degraded.append(Degraded("boosts", str(error) or "timed out", request.watch.total_ms()))
            return {}
        weight = self._settings.centrality_weight
        return {"centrality": {id_: centrality(value, weight) for id_, value in values.items()}}

    async def _explain(self, request: _Request, rankings: Sequence[Ranking], withheld: int) -> Explanation:
        """What the answer was made of; the lock on the hits is on these too."""
        ids = sorted({id_ for ranking in rankings for id_ in ranking.ids})
        records = await self._fetch(ids, request)
        may_leave = lock(request.plan.query.filter)
        shown = {id_ for id_, record in records.items() if may_leave(record)}
        return Explanation(
            fusion=str(request.plan.strategy),
            weights=request.plan.weights,
            depth=request.plan.query.depth,
            encoder=request.encoder,
            rankings={
                ranking.source: tuple(ExplainedHit(hit.id, hit.rank, hit.score) for hit in ranking if hit.id in shown)
                for ranking in rankings
            },
            withheld=withheld,
        )

    async def _fetch(self, ids: Sequence[DocId], request: _Request) -> Mapping[DocId, Record]:
        """The documents. Without them there is no answer: neither their text nor the check of who may read it."""
        try:
            with anyio.fail_after(request.left_s()):
                return await self._documents.fetch(request.plan.query.scope, ids)
        except (TimeoutError, AdapterError) as error:
            reason = str(error) or "timed out"
            raise AllSourcesFailed((Failed("documents", reason, request.watch.total_ms()),)) from error


def _route(decided: Plan, asked: tuple[str, ...]) -> Route:
    """Who was asked, and why; with why not, if a source that was planned was not."""
    if asked == decided.sources:
        return Route(asked, decided.reason)
    left = " and ".join(source for source in decided.sources if source not in asked)
    return Route(asked, f"{decided.reason}; it names nothing and the others agree, so {left} was not asked")


def _answers(outcomes: Mapping[str, Outcome], request: _Request) -> list[Ranking]:
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


def _fuse(rankings: Sequence[Ranking], request: _Request) -> list[FusedHit]:
    """Fuse as planned; if that fails, put the rankings behind one another, and say so."""
    chosen = request.plan
    try:
        return chosen.strategy(rankings, chosen.weights, chosen.window)
    except Exception:
        _log.exception("fusion by %s failed", chosen.strategy)
        fallback = Concatenate()
        reason = f"{chosen.strategy} failed, {fallback} was used"
        request.degraded.append(Degraded("fusion", reason, request.watch.total_ms()))
        return fallback(rankings, chosen.weights, chosen.window)
