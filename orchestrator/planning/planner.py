"""Makes the plan of a request. Pure, so that every decision can be tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from adapters import Sensitivity
from adapters.model.filter import Filter
from adapters.model.spelling import allowed_names
from cache import hash_key
from fusion.confidence import Calibrations
from fusion.source import Source
from fusion.values import CollapseMode
from orchestrator.auth.principal import Principal
from orchestrator.planning.defaults import (
    BY_SCORE,
    Profile,
    default_weights,
    depth_of,
    encoder_of,
    is_reranked,
    limit_of,
    profile_of,
)
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import RequestFilters, request_filters
from orchestrator.planning.likeness import like_plan
from orchestrator.planning.listing import REASON, facet_plans, listing_plan
from orchestrator.planning.page_token import HASH_BYTES, PageToken
from orchestrator.planning.plan import BoostPlan, CallPlan, PagePlan, Plan, RankingPlan, RerankPlan
from orchestrator.planning.query_vector import require_vector, unit_vector
from orchestrator.planning.routing import IDENTIFIER_FACTOR, Routing, choose_sources
from orchestrator.planning.strategies import NAMED, Strategies, parse_strategy
from orchestrator.schema.hits import HIT_FIELDS
from orchestrator.schema.search import (
    AUTO,
    DEFAULT_TOKENS,
    HYBRID,
    BoostName,
    BoostStrength,
    EncoderName,
    SearchRequest,
)
from orchestrator.settings.groups import Settings

MAX_QUERY_CHARS = 4_096
_RELATIONSHIP_WEIGHT = 0.1
"""Fraction by which the boost ``relationship`` raises the score of the document that the walk scores best."""
_RERANK_CHARS, _RERANK_TOTAL_CHARS = 1_000, 16_000
"""Characters of each hit that the reranker gets, and of all hits together, shared evenly."""
_RERANK_CLEARANCE: Sensitivity = "normal"
"""Texts above this sensitivity are not sent to a reranker: it may belong to a third party."""
_CITED_FIELDS = tuple(name for name in HIT_FIELDS if name not in {"text", "snippet"})
"""Fields of the hits beside a context, which has their texts."""


def make_plan(
    request: SearchRequest,
    principal: Principal,
    settings: Settings,
    sources: Sequence[Source],
    trust: float,
    today: int,
    *,
    dimension: int,
    encodes_texts: bool = True,
    max_query_chars: int = MAX_QUERY_CHARS,
    calibrations: Callable[[EncoderName], Calibrations] = lambda _: (),
    strategies: Strategies = NAMED,
) -> Plan:
    """Plan a request.

    :param sources: descriptions of all sources.
    :param trust: in [0, 1], the measured trust of the scope.
    :param today: in days since the epoch.
    :param dimension: length of the documents' vectors.
    :param encodes_texts: whether queries need no vectors of their own.
    :param calibrations: of the scope's confidence, by encoder of the query.
    :param strategies: that the settings may name; a request names those that every service has.
    :raises BadRequest: if a value is not allowed.
    """
    listing, like = listing_plan(request), like_plan(request, max_query_chars)
    if not (listing or like):
        _check_text(request.query, max_query_chars)
    limit = limit_of(request, settings)
    if not 1 <= limit <= settings.requests.max_limit:
        raise BadRequest(f"limit: {limit}, allowed are 1 to {settings.requests.max_limit}")
    profile = profile_of(request, settings)
    weights = default_weights(request, profile, settings)
    has_vector = request.vector is not None or encodes_texts or (like is not None and bool(like.ids))
    trust, factor = (1.0, 1.0) if profile.has_fixed_weights else (trust, IDENTIFIER_FACTOR)
    if listing:
        routing = Routing((), {source.name: 1.0 for source in sources}, REASON)
    else:
        routing = choose_sources(request, sources, weights, trust, has_vector, factor)
    is_single = listing is not None or request.mode not in (AUTO, HYBRID)
    # The hits of a single source are ordered by its scores.
    default = BY_SCORE if is_single else profile.weighted_fusion if request.weights else profile.fusion
    try:
        parsed, seeded = strategies.find(default) if request.fusion is None else parse_strategy(request.fusion)
    except ValueError as error:
        raise BadRequest(f"fusion: {error}") from error
    filters = request_filters(request, principal, settings.access.default_collections)
    calls = _calls(routing, filters, seeded is not None)
    # A walk with seeds starts near relevant documents; without, it starts from the names in the query.
    has_seeds = any(call.stage > 1 for call in calls)
    collapse = request.collapse or ("none" if is_single else settings.requests.collapse)
    vector = None if request.vector is None else unit_vector(request.vector, dimension)
    if not has_vector:
        require_vector(routing.sources, dimension)
    ranking_hash = hash_key(*ranking_identity(request, vector, filters.filter, collapse, principal))[:HASH_BYTES]
    rerank = _rerank(settings) if not listing and is_reranked(request, settings) else None
    depth = depth_of(profile, settings)
    token = _page_token(request, rerank, ranking_hash, depth)
    is_context = request.format == "context"
    fields = _hit_fields(_CITED_FIELDS if request.fields is None and is_context else request.fields)
    encoder = token.encoder if token and token.encoder != "none" else encoder_of(request, settings)
    return Plan(
        mode=request.mode,
        profile=request.profile or settings.requests.profile,
        reason=routing.reason,
        collections=tuple(sorted(set(request.collections or ()))),
        ranking=RankingPlan(
            scope=principal.scope,
            clearance=principal.clearance,
            text=request.query,
            vector=vector,
            calls=calls,
            hops=settings.requests.hops if request.hops is None and not has_seeds else request.hops,
            depth=token.depth if token else depth,
            weights=routing.weights,
            access=filters.access,
            filter=filters.filter,
            left_out=filters.left_out,
            strategy=str(parsed),
            boosts=_boosts(request, profile, is_single),
            collapse=collapse,
            window_radius=request.neighbors or settings.ranking.window_radius,
            min_score=request.min_score,
            min_confidence=0.0 if listing or like else _min_confidence(request, settings),
            calibrations=() if like else calibrations(encoder),
            may_skip_stage_2=request.mode == AUTO and not like,
            encoder=encoder,
            day=token.day if token else today,
        ),
        page=PagePlan(
            offset=token.offset if token else 0,
            limit=limit,
            neighbors=request.neighbors,
            rerank=rerank,
            explain=request.explain,
            highlight=not listing and request.highlight and (fields is None or "snippet" in fields),
            fields=fields,
            text_chars=request.text_chars,
            format=request.format,
            max_tokens=DEFAULT_TOKENS if request.max_tokens is None and is_context else request.max_tokens,
            ranking_hash=ranking_hash,
            token=token,
        ),
        listing=listing,
        like=like,
        facets=facet_plans(request.facets),
    )


def ranking_identity(
    request: SearchRequest, vector: bytes | None, condition: Filter, collapse: CollapseMode, principal: Principal
) -> tuple[object, ...]:
    """Everything in a request that decides its ranking, in canonical form: it has to be the same on every page.

    :param vector: that the request brings, of unit length.
    :param condition: the request's filter in normal form, within what the principal may see.
    """
    return (
        request.query,
        request.like,
        vector,
        request.mode,
        condition,
        request.profile,
        request.fusion,
        sorted(request.weights.items()),
        sorted(msgspec.to_builtins(request.boosts).items()),
        collapse,
        request.neighbors,
        request.min_score,
        request.min_confidence,
        request.hops,
        request.sort,
        principal.scope,
        principal.clearance,
    )


def _min_confidence(request: SearchRequest, settings: Settings) -> float:
    return settings.requests.min_confidence if request.min_confidence is None else request.min_confidence


def _check_text(query: str, max_query_chars: int) -> None:
    if not query:
        raise BadRequest(f"query: '', allowed are texts of 1 to {max_query_chars} characters")
    if len(query) > max_query_chars:
        raise BadRequest(f"query: {len(query)} characters, allowed are 1 to {max_query_chars}")
    if not query.strip():
        raise BadRequest("query: only white space, allowed is text of 1 character and more")
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"query: cannot be encoded as UTF-8, at character {error.start + 1}") from error


def _hit_fields(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    for name in names:
        if name not in HIT_FIELDS:
            raise BadRequest(f"fields: {name[:80]!r} is not a field of a hit, {allowed_names(name, HIT_FIELDS)}")
    return tuple(sorted({*names}))


def _page_token(request: SearchRequest, rerank: RerankPlan | None, ranking_hash: bytes, depth: int) -> PageToken | None:
    if request.cursor is None:
        return None
    if rerank:
        raise BadRequest("cursor: a reranker may order the same hits differently each time, so its result has no pages")
    try:
        return PageToken.decode(request.cursor, ranking_hash, depth)
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


def _boosts(request: SearchRequest, profile: Profile, is_single: bool) -> tuple[BoostPlan, ...]:
    weights = {"centrality": profile.centrality_weight, "relationship": _RELATIONSHIP_WEIGHT}
    default: Mapping[BoostName, float] = {} if is_single else profile.boosts
    plans = []
    for name in sorted(default.keys() | request.boosts.keys()):
        chosen = request.boosts.get(name, BoostStrength(default.get(name, 0.0)))
        if isinstance(chosen, bool):
            chosen = BoostStrength(float(chosen))
        if chosen.half_life_days is not None and name != "recency":
            raise BadRequest(f"boosts: half_life_days of {name!r}, allowed is that of recency")
        half_life = chosen.half_life_days or profile.half_life_days if name == "recency" else None
        if chosen.strength:
            plans.append(BoostPlan(name, chosen.strength * weights.get(name, 1.0), half_life))
    return tuple(plans)


def _rerank(settings: Settings) -> RerankPlan:
    return RerankPlan(
        settings.rerank.url,
        settings.rerank.model,
        settings.rerank.max_hits,
        _RERANK_CHARS,
        _RERANK_TOTAL_CHARS,
        _RERANK_CLEARANCE,
    )
