"""Searches a share of the queries again under another profile, and compares the two rankings.

A request only puts itself into a short queue, after its response is complete. One of them is searched at a time, in a
slot of the same admission as all searches, and the next one waits three times as long as that took. So live searches
find the process free most of the time, and no response is changed by it.

The response itself was computed while the caches of encoders, engines and servers were cold. So that times can be
compared, each query is searched again under both profiles, in random order.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from orchestrator.auth.principal import Principal
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.schema.search import ProfileName, ResponseBody, SearchRequest, SearchResponse
from orchestrator.service.errors import Overloaded
from orchestrator.service.response_cache import EncodedResponse
from orchestrator.service.search import SearchService

COMPARED, FAILED = "shadow search compared", "shadow search failed"
"""The messages in the log: a line for each shadow search that ran."""

_log = logging.getLogger(__name__)

_MAX_WAITING = 32
"""Requests that wait for their shadow search; the others are skipped."""
_PATIENCE_S = 60.0
"""How long a shadow search waits for a slot."""
_REST = 3.0
"""Pause after each shadow search, in terms of the time that it took."""
_MIN_COMMON = 2
"""Hits that two rankings need in common for an order."""

ShadowOutcome: TypeAlias = Literal["compared", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two first pages for the same query on the same documents.

    :param overlap: the hits that both have, by the hits of the longer one; in [0, 1].
    :param rank_correlation: of the hits that both have, in [-1, 1]; ``None`` for fewer than two of them.
    :param same_first: whether the first hit is the same.
    :param live_ms: of the search under the profile of the settings, computed again, without waiting for a slot;
        ``shadow_ms`` under the other one.
    """

    overlap: float
    rank_correlation: float | None
    same_first: bool
    live_ms: float
    shadow_ms: float


Observer: TypeAlias = Callable[[ShadowOutcome, "Comparison | None"], None]
"""Called with the outcome of each request that was chosen, and the comparison if there is one."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A request, and the hits of its response.

    :param documents: the state of the documents that the response is of.
    """

    request: SearchRequest
    principal: Principal
    request_id: str
    hits: Sequence[tuple[str, str]]
    documents: tuple[str, int]


class Shadow:
    """The shadow searches of a process. It belongs to one event loop.

    :param search: the live one. Its circuit breakers do not count the failures of shadow searches.
    :param profile: of the shadow searches, instead of that of the settings.
    :param share: of the searches that can be compared, in (0, 1].
    :param chance: a number in [0, 1).
    """

    def __init__(
        self, search: SearchService, profile: ProfileName, share: float, chance: Callable[[], float] = random.random
    ) -> None:
        self._profiles = search.settings.requests.profile, profile
        self.observe: Observer = lambda *_: None
        settings = search.settings.changed(profile=profile)
        self._live = replace(search, retrieval=search.retrieval.with_own_breakers())
        self._search = self._live.with_settings(settings)
        self._share = share
        self._chance = chance
        self._waiting: asyncio.Queue[_Chosen] = asyncio.Queue(_MAX_WAITING)

    def offer(self, request: SearchRequest, principal: Principal, request_id: str, response: EncodedResponse) -> None:
        """Choose a request or not, after its response was computed. Never waits."""
        body = response.computed
        if not body or not _is_comparable(request, response) or self._chance() >= self._share:
            return
        chosen = _Chosen(request, principal, request_id, _hits(body), _documents(body))
        try:
            self._waiting.put_nowait(chosen)
        except asyncio.QueueFull:
            self.observe("skipped", None)

    async def run(self) -> None:
        """Search for each request that was chosen, until this is cancelled. Errors are logged."""
        try:
            await self._search_endlessly()
        finally:
            for _ in range(self._waiting.qsize()):
                self.observe("skipped", None)

    async def _search_endlessly(self) -> None:
        while True:
            chosen = await self._waiting.get()
            start = perf_counter()
            try:
                await self._search_again(chosen)
            except Overloaded:
                self.observe("skipped", None)
            except (_Degraded, AllSourcesFailed) as error:
                self._failed(chosen, str(error))
            except Exception:
                _log.exception("a shadow search failed")
                self.observe("failed", None)
            await asyncio.sleep((perf_counter() - start) * _REST)

    async def _search_again(self, chosen: _Chosen) -> None:
        live_first = self._chance() < 0.5
        responses = {}
        for is_live in (live_first, not live_first):
            responses[is_live] = await self._response(chosen, self._live if is_live else self._search)
        self._compare(chosen, responses[True].took_ms, responses[False])

    async def _response(self, chosen: _Chosen, search: SearchService) -> SearchResponse:
        """The response, computed again.

        :raises _Degraded: if it is not whole.
        """
        request = msgspec.structs.replace(
            chosen.request, cache="bypass", explain=False, facets={}, format="hits", max_tokens=None, fields=("id",)
        )
        async with search.admission.slot(chosen.principal.scope.tenant, _PATIENCE_S, is_batch=True):
            response = await search.search(request, chosen.principal, chosen.request_id)
        if response.degraded:
            raise _Degraded("; ".join(f"{each.source}: {each.reason}" for each in response.degraded))
        return response

    def _compare(self, chosen: _Chosen, live_ms: float, response: SearchResponse) -> None:
        if _documents(response) != chosen.documents:
            self.observe("skipped", None)  # they have changed since
            return
        comparison = compare(chosen.hits, _hits(response), live_ms, response.took_ms)
        self.observe("compared", comparison)
        _log.info(COMPARED, extra=self._named(chosen) | {name: getattr(comparison, name) for name in _FIELDS})

    def _failed(self, chosen: _Chosen, reason: str) -> None:
        self.observe("failed", None)
        _log.info(FAILED, extra=self._named(chosen) | {"reason": reason})

    def _named(self, chosen: _Chosen) -> dict[str, object]:
        live, shadow = self._profiles
        return {"request_id": chosen.request_id, "live": live, "shadow": shadow}


_FIELDS = tuple(Comparison.__dataclass_fields__)


class _Degraded(Exception):
    """A response is not whole."""


def _hits(body: ResponseBody) -> list[tuple[str, str]]:
    return [(each.collection, each.id) for each in body.hits]


def _documents(body: ResponseBody) -> tuple[str, int]:
    return body.index_version, body.generation


def _is_comparable(request: SearchRequest, response: EncodedResponse) -> bool:
    """Whether the profile decides the ranking, the response is whole, and it is the first page."""
    is_ranked = response.plan.listing is None and len(response.plan.ranking.sources) > 1
    is_of_settings = request.profile is None and request.fusion is None and response.plan.other is None
    return (
        is_ranked and is_of_settings and not request.cursor and not (response.computed and response.computed.degraded)
    )


def compare(
    live: Sequence[tuple[str, str]], shadow: Sequence[tuple[str, str]], live_ms: float, shadow_ms: float
) -> Comparison:
    """Compare two rankings of different documents each.

    The rank correlation is Kendall's tau (Kendall, "A New Measure of Rank Correlation", Biometrika 1938).
    """
    ranks = {document: rank for rank, document in enumerate(shadow)}
    common = np.array([ranks[document] for document in live if document in ranks], np.int64)
    longest = max(len(live), len(shadow))
    correlation = None
    if len(common) >= _MIN_COMMON:
        before, after = np.triu_indices(len(common), 1)
        correlation = float(np.sign(common[after] - common[before]).mean())
    return Comparison(
        overlap=len(common) / longest if longest else 1.0,
        rank_correlation=correlation,
        same_first=live[:1] == shadow[:1],
        live_ms=live_ms,
        shadow_ms=shadow_ms,
    )
