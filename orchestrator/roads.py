"""The roads that a query goes down: which source is asked what, and when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from adapters import AdapterError, Expander, Priors, Query, Retriever
from fusion import DocId, Ranking, TwoRounds, merged
from orchestrator.breakers import Breakers
from orchestrator.encode import Encoding
from orchestrator.gather import Road, agree, gather
from orchestrator.outcome import Answered, Outcome
from orchestrator.request import Request

_log = logging.getLogger(__name__)

_FIRST_ROUND = 0.6
"""Of the sources' time, what the first of two rounds has at most."""
_NAMES_SHARE = 0.3
"""Of what is left of it then, what the question may take whether the second round is worth it."""
_EXPANSION_SHARE = 0.3
"""Of the sources' time, what finding other words for the query may take."""


class Roads:
    """The sources, and what is needed to ask them."""

    def __init__(
        self,
        sources: Mapping[str, Retriever],
        priors: Priors,
        encoding: Encoding,
        expander: Expander | None,
        breakers: Breakers,
    ) -> None:
        self.encoding = encoding
        self._breakers = breakers
        self._sources = sources
        self._priors = priors
        self._expander = expander

    async def ask(self, request: Request) -> dict[str, Outcome]:
        """Ask the sources: all at once, or one after the others if the strategy has it start from what they found."""
        decided, rounds = request.plan, request.plan.rounds
        limit_s = min(decided.timeout_s, request.left_s())
        if rounds is None:
            return await self._gather(decided.sources, request, decided.query, limit_s)
        return await self._in_two_rounds(request, rounds, limit_s)

    async def _gather(
        self, sources: Sequence[str], request: Request, query: Query, limit_s: float
    ) -> dict[str, Outcome]:
        """Ask those that are not left alone; what became of all, in the order of ``sources``."""
        asked, found = self._breakers.split(sources)
        try:
            answered = await gather({each: self._road(each, request, query, limit_s) for each in asked}, limit_s)
        except BaseException:
            self._breakers.abandon(asked)
            raise
        self._breakers.note(answered)
        found |= answered
        return {source: found[source] for source in sources}

    async def _in_two_rounds(self, request: Request, rounds: TwoRounds, limit_s: float) -> dict[str, Outcome]:
        ends = perf_counter() + limit_s
        decided = request.plan

        def left_s() -> float:
            return ends - perf_counter()

        first_s = limit_s * _FIRST_ROUND
        first = [each for each in decided.sources if each != rounds.follows]
        found = await self._gather(first, request, decided.query, first_s)
        answered = [outcome.ranking for outcome in found.values() if isinstance(outcome, Answered)]
        if decided.may_stop and agree(answered) and not await self._names(request, left_s() * _NAMES_SHARE):
            return found
        query = replace(decided.query, near=_start(rounds, answered, request))
        found |= await self._gather([rounds.follows], request, query, left_s())
        return {source: found[source] for source in decided.sources}

    async def _names(self, request: Request, timeout_s: float) -> bool:
        """Whether the query names anything. Who cannot say is asked for more: then the answer says what is wrong."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._priors.names(request.plan.query)
        except (TimeoutError, AdapterError):
            return True

    def _road(self, source: str, request: Request, query: Query, limit_s: float) -> Road:
        """How one source is asked. Vector encodes first, keyword looks for other words: beside the others."""
        retriever, watch = self._sources[source], request.watch
        # The walk is one, in however many collections its documents lie.
        filters = (query.filter,) if source == "graph" else request.plan.parts

        async def ask(query: Query = query) -> Ranking:
            with watch.stage(source):
                return await _in_parts(retriever, [replace(query, filter=each) for each in filters])

        async def encode_and_ask() -> Ranking:
            encoded = await encoding
            request.encoder = encoded.by
            watch.note(f"embed_{encoded.by}", encoded.ms)
            return await ask(replace(query, vector=encoded.vector))

        async def expand_and_ask(expander: Expander) -> Ranking:
            with watch.stage("expand"):
                async with request.optional("expansion", seconds=limit_s * _EXPANSION_SHARE):
                    request.expansions = await expander.expand(query.text)
            return await ask(replace(query, expansions=request.expansions))

        if source == "vector" and query.vector is None:
            pinned = request.plan.cursor.encoder if request.plan.cursor else None
            encoding = self.encoding.encode(query.text, request.in_flight, pinned)
            return encode_and_ask
        if source == "keyword" and (expander := self._expander):
            return lambda: expand_and_ask(expander)
        return ask


def _start(rounds: TwoRounds, answered: Sequence[Ranking], request: Request) -> tuple[DocId, ...]:
    """Where the second round starts; from the query's names alone, if the strategy fails."""
    try:
        return rounds.start(answered, request.plan.weights)
    except Exception:
        _log.exception("%s cannot say where to start", rounds)
        request.degrade("fusion", f"{rounds} failed to say where to start")
        return ()


async def _in_parts(retriever: Retriever, queries: Sequence[Query]) -> Ranking:
    """The same question to several parts of one source at once."""
    if len(queries) == 1:
        return await retriever.search(queries[0])
    searches: list[Coroutine[Any, Any, Ranking]] = [retriever.search(query) for query in queries]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(search) for search in searches]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return merged([task.result() for task in tasks])
