"""Defaults for the fields that a request does not set, from the settings and their profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adapters.model.sources import GRAPH, KEYWORD
from adapters.rerank import NONE
from fusion.joint_walk import JointWalk
from fusion.rrf import RRF
from orchestrator.schema.search import BoostName, EncoderName, ProfileName, SearchRequest
from orchestrator.settings.groups import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named ranking. With a strategy that has seeds, the graph is searched after the text sources; otherwise all
    sources are searched at the same time.

    :param weighted_fusion: the strategy for a request with weights of its own.
    :param weights: of the sources, where neither the request nor the settings have weights.
    :param boosts: the strengths of the boosts that are on.
    :param has_fixed_weights: whether neither the trust in the graph nor an identifier in the query changes a weight.
    :param half_life_days: of the boost ``recency``; ``None``: that of the boost.
    :param centrality_weight: of the boost ``centrality``.
    :param left_out: sources that are not searched, unless the request has a weight of them.
    :param depth: the documents to request from each source, as a multiple of those that the settings name.
    :param encoder: of the query, if the settings provide it; otherwise, and if there is none, that of the settings.
    :param is_reranked: whether the best hits are reranked, if there is a reranker and the request does not say.
    """

    fusion: str = str(JointWalk())
    weighted_fusion: str = str(JointWalk())
    weights: Mapping[str, float] = field(default_factory=dict)
    boosts: Mapping[BoostName, float] = field(default_factory=dict)
    centrality_weight: float = 0.1
    half_life_days: float | None = None
    has_fixed_weights: bool = False
    left_out: tuple[str, ...] = ()
    depth: float = 1.0
    encoder: EncoderName | None = None
    is_reranked: bool = False


PROFILES: Mapping[ProfileName, Profile] = {
    "joint": Profile(),
    "fast": Profile(left_out=(GRAPH.name,), depth=0.5, encoder="static"),
    "quality": Profile(encoder="model", is_reranked=True),
    "rrf": Profile(
        fusion=str(RRF(60)),
        weighted_fusion=str(RRF(60)),
        boosts={"centrality": 1.0},
        centrality_weight=1.0,
        has_fixed_weights=True,
    ),
    "weighted_rrf": Profile(fusion=str(RRF(60, slope=3)), weighted_fusion=str(RRF(60)), weights={KEYWORD.name: 2.5}),
}
"""``joint`` is the default; ``fast`` and ``quality`` are the same with less and with more effort
(docs/decisions/0054-profiles-by-effort.md). ``rrf`` is reciprocal rank fusion as published, all weights 1, times
1 + centrality. ``weighted_rrf`` has measured weights, the graph's as far as it covers the query, and no boost
(docs/decisions/0049-two-profiles-of-rrf.md)."""


BY_SCORE = str(JointWalk())
"""The strategy that orders the hits of one source by their scores, also over several collections."""


def profile_of(request: SearchRequest, settings: Settings) -> Profile:
    """The profile that a request names, unchanged; otherwise the default profile."""
    if request.profile is not None:
        return PROFILES[request.profile]
    return default_profile(settings)


def default_profile(settings: Settings) -> Profile:
    """The profile that the settings name, with the values that they override."""
    ranking, named = settings.ranking, PROFILES[settings.requests.profile]
    return replace(
        named,
        fusion=named.fusion if ranking.fusion is None else ranking.fusion,
        weighted_fusion=named.weighted_fusion if ranking.fusion is None else ranking.fusion,
        boosts=named.boosts if ranking.boosts is None else ranking.boosts,
        centrality_weight=named.centrality_weight if ranking.centrality_weight is None else ranking.centrality_weight,
        half_life_days=ranking.half_life_days,
    )


def default_weights(request: SearchRequest, profile: Profile, settings: Settings) -> dict[str, float]:
    """The weights of sources that a request does not weight."""
    weights = dict(settings.ranking.weights if request.weights else {**profile.weights, **settings.ranking.weights})
    return weights | dict.fromkeys(profile.left_out, 0.0)


def encoder_of(request: SearchRequest, settings: Settings) -> EncoderName:
    """The encoder of a query."""
    encoder = _named_profile(request, settings).encoder
    return encoder if encoder and encoder in settings.encoding.query_encoders else settings.encoding.query_encoder


def depth_of(profile: Profile, settings: Settings) -> int:
    """Documents to request from each source, in each collection: the same for every limit, which changes no hit."""
    return max(round(profile.depth * settings.sources.candidates), settings.requests.max_limit)


def is_reranked(request: SearchRequest, settings: Settings) -> bool:
    """Whether the reranker orders the best hits."""
    if request.rerank is not None:
        return request.rerank
    by_profile = _named_profile(request, settings).is_reranked and settings.rerank.url != NONE
    return settings.requests.rerank or by_profile


def _named_profile(request: SearchRequest, settings: Settings) -> Profile:
    """The profile without the values that the settings override: making it with them takes longer."""
    return PROFILES[request.profile or settings.requests.profile]


def limit_of(request: SearchRequest, settings: Settings) -> int:
    """The maximum number of hits of a page."""
    requests = settings.requests
    return min(requests.default_limit, requests.max_limit) if request.limit is None else request.limit


def timeout_ms(request: SearchRequest, settings: Settings) -> int:
    """The time limit of a request. By default that of the reranker is added to that of the search."""
    if request.timeout_ms is not None:
        return request.timeout_ms
    return settings.requests.timeout_ms + (settings.rerank.timeout_ms if is_reranked(request, settings) else 0)
