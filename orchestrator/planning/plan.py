"""From a request to a plan: pure, so that every decision can be shown and tested.

A plan is complete: no later stage reads the request or the settings. It has a canonical encoding, and together with the
version of the data it is the cache key. What changes no response is not in it: time limits and the cache mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from adapters import Scope, Sensitivity
from adapters.filter import Filter
from cache import hash_key
from fusion import CollapseMode, SeededStrategy, Source, Strategy, parse
from orchestrator.auth.principal import Principal
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import RequestFilters, request_filters
from orchestrator.planning.page_token import HASH_BYTES, PageToken
from orchestrator.planning.query_vector import unit_vector
from orchestrator.planning.routing import Routing, choose_sources
from orchestrator.schema.search import AUTO, BoostName, EncoderName, SearchRequest
from orchestrator.settings.groups import Settings

DAY_S = 86_400
MAX_QUERY_CHARS = 4_096
_MAX_LIMIT = 50
"""The largest ``limit`` of a request."""
_RELATIONSHIP_WEIGHT = 0.1
"""Fraction by which the boost ``relationship`` raises the score of the document that the walk scores best."""
_RERANK_CHARS, _RERANK_TOTAL_CHARS = 1_000, 16_000
"""Characters of each hit that the reranker gets, and of all hits together, shared evenly."""
_RERANK_CLEARANCE: Sensitivity = "normal"
"""Texts above this sensitivity are not sent to a reranker: it may belong to a third party."""


class CallPlan(Struct, frozen=True):
    """The search of one source: its stage, and a filter for each search that it takes."""

    source: str
    stage: int
    filters: tuple[Filter, ...]


class BoostPlan(Struct, frozen=True):
    """A boost, and its weight where it has one."""

    name: BoostName
    weight: float = 1.0


class RankingPlan(Struct, frozen=True):
    """Everything that decides the order, and nothing else does.

    :param vector: of the query, of unit length; ``None``: encode the text.
    :param calls: in the order in which responses name the sources.
    :param depth: documents to request from each source, in each collection.
    :param weights: of every source.
    :param may_skip_stage_2: whether stage 2 is left out if the text sources agree and the query mentions no entity.
    :param encoder: that encodes the query.
    :param day: ages are counted from its beginning; in days since the epoch.
    """

    scope: Scope
    clearance: Sensitivity
    text: str
    vector: tuple[float, ...] | None
    calls: tuple[CallPlan, ...]
    depth: int
    weights: Mapping[str, float]
    access: Filter
    filter: Filter
    strategy: str
    boosts: tuple[BoostPlan, ...]
    collapse: CollapseMode
    window_radius: int
    min_score: float
    may_skip_stage_2: bool
    encoder: EncoderName
    day: int

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources to search."""
        return tuple(call.source for call in self.calls)


class RerankPlan(Struct, frozen=True):
    """The hits that the reranker gets, the number of characters, and the highest sensitivity."""

    reranker: str
    model: str
    max_hits: int
    max_chars: int
    max_total_chars: int
    clearance: Sensitivity


class PagePlan(Struct, frozen=True):
    """The part of the ranking to return, and what to add to its hits."""

    offset: int
    limit: int
    neighbors: int
    rerank: RerankPlan | None
    explain: bool
    ranking_hash: bytes
    token: PageToken | None


class Plan(Struct, frozen=True):
    """Everything decided about a request before any source is searched."""

    mode: str
    reason: str
    ranking: RankingPlan
    page: PagePlan


def make_plan(
    request: SearchRequest,
    principal: Principal,
    settings: Settings,
    sources: Sequence[Source],
    trust: float,
    today: int,
    dimension: int,
    max_query_chars: int = MAX_QUERY_CHARS,
) -> Plan:
    """Plan a request.

    :param sources: descriptions of all sources.
    :param trust: in [0, 1], the measured trust of the scope.
    :param today: in days since the epoch.
    :param dimension: length of the documents' vectors.
    :raises BadRequest: if a value is not allowed.
    """
    _check_text(request.query, max_query_chars)
    routing = choose_sources(request, sources, settings.ranking.weights, trust)
    strategy = settings.ranking.fusion if request.fusion is None else request.fusion
    try:
        parsed, seeded = parse_strategy(strategy)
    except ValueError as error:
        raise BadRequest(f"fusion: {error}") from error
    filters = request_filters(request, principal, settings.access.default_collections)
    ranking_hash = hash_key(*ranking_identity(request, filters.filter, principal))[:HASH_BYTES]
    token = _page_token(request, ranking_hash, settings)
    depth = max(request.limit * settings.sources.overfetch, settings.sources.candidates)
    return Plan(
        mode=request.mode,
        reason=routing.reason,
        ranking=RankingPlan(
            scope=principal.scope,
            clearance=principal.clearance,
            text=request.query,
            vector=None if request.vector is None else unit_vector(request.vector, dimension),
            calls=_calls(routing, filters, seeded is not None),
            depth=token.depth if token else depth,
            weights=routing.weights,
            access=filters.access,
            filter=filters.filter,
            strategy=str(parsed),
            boosts=_boosts(request, settings),
            collapse=request.collapse,
            window_radius=request.neighbors or settings.ranking.window_radius,
            min_score=request.min_score,
            may_skip_stage_2=request.mode == AUTO,
            encoder=token.encoder if token and token.encoder != "none" else settings.encoding.query_encoder,
            day=token.day if token else today,
        ),
        page=PagePlan(
            offset=token.offset if token else 0,
            limit=request.limit,
            neighbors=request.neighbors,
            rerank=_rerank(settings) if request.rerank else None,
            explain=request.explain,
            ranking_hash=ranking_hash,
            token=token,
        ),
    )


def ranking_identity(request: SearchRequest, condition: Filter, principal: Principal) -> tuple[object, ...]:
    """Everything in a request that decides its ranking, in canonical form: it has to be the same on every page.

    :param condition: the request's filter in normal form, within what the principal may see.
    """
    return (
        request.query,
        request.vector,
        request.mode,
        condition,
        request.fusion,
        sorted(request.weights.items()),
        sorted(request.boosts.items()),
        request.collapse,
        request.neighbors,
        request.min_score,
        principal.scope,
        principal.clearance,
    )


@lru_cache(maxsize=256)
def parse_strategy(text: str) -> tuple[Strategy, SeededStrategy | None]:
    """A strategy, and the same again if it has two stages: checking a protocol costs more than planning does.

    :raises ValueError: as :func:`fusion.parse`.
    """
    strategy = parse(text)
    return strategy, strategy if isinstance(strategy, SeededStrategy) else None


def _check_text(query: str, max_query_chars: int) -> None:
    if len(query) > max_query_chars:
        raise BadRequest(f"query: {len(query)} characters, allowed are 1 to {max_query_chars}")
    if not query.strip():
        raise BadRequest("query: only white space, allowed is text of 1 character and more")
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"query: cannot be encoded as UTF-8, at character {error.start + 1}") from error


def _page_token(request: SearchRequest, ranking_hash: bytes, settings: Settings) -> PageToken | None:
    if request.cursor is None:
        return None
    if request.rerank:
        raise BadRequest("cursor: a reranker may order the same hits differently each time, so its result has no pages")
    try:
        max_depth = max(_MAX_LIMIT * settings.sources.overfetch, settings.sources.candidates)
        return PageToken.decode(request.cursor, ranking_hash, max_depth)
    except ValueError as error:
        raise BadRequest(f"cursor: {error}") from error


def _calls(routing: Routing, filters: RequestFilters, is_seeded: bool) -> tuple[CallPlan, ...]:
    """A second stage needs a strategy with seeds, a source that takes them, and another source that provides them."""
    two_stages = is_seeded and len({source.stage for source in routing.sources}) > 1
    return tuple(
        CallPlan(
            source.name,
            source.stage if two_stages else 1,
            filters.by_collection if source.per_collection else (filters.filter,),
        )
        for source in routing.sources
    )


def _boosts(request: SearchRequest, settings: Settings) -> tuple[BoostPlan, ...]:
    switches: dict[BoostName, bool] = dict.fromkeys(settings.ranking.boosts, True) | request.boosts
    weights = {"centrality": settings.ranking.centrality_weight, "relationship": _RELATIONSHIP_WEIGHT}
    return tuple(BoostPlan(name, weights.get(name, 1.0)) for name, on in sorted(switches.items()) if on)


def _rerank(settings: Settings) -> RerankPlan:
    return RerankPlan(
        settings.rerank.url,
        settings.rerank.model,
        settings.rerank.max_hits,
        _RERANK_CHARS,
        _RERANK_TOTAL_CHARS,
        _RERANK_CLEARANCE,
    )
