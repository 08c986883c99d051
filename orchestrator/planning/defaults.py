"""Defaults for the fields that a request does not set, from the settings and their profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.model.sources import KEYWORD
from fusion.joint_walk import JointWalk
from fusion.rrf import RRF
from orchestrator.schema.search import BoostName, ProfileName, SearchRequest
from orchestrator.settings.groups import Settings


@dataclass(frozen=True, slots=True)
class Profile:
    """A named ranking. With a strategy that has seeds, the graph is searched after the text sources; otherwise all
    sources are searched at the same time.

    :param weighted_fusion: the strategy for a request with weights of its own.
    :param weights: of the sources, where neither the request nor the settings have weights.
    :param boosts: the strengths of the boosts that are on.
    :param has_fixed_weights: whether neither the trust in the graph nor an identifier in the query changes a weight.
    :param half_life_days: of the boost ``recency``; ``None``: that of the boost.
    :param centrality_weight: of the boost ``centrality``.
    """

    fusion: str
    weighted_fusion: str
    weights: Mapping[str, float]
    boosts: Mapping[BoostName, float]
    centrality_weight: float
    half_life_days: float | None = None
    has_fixed_weights: bool = False


PROFILES: Mapping[ProfileName, Profile] = {
    "joint": Profile(str(JointWalk()), str(JointWalk()), {}, {}, 0.1),
    "rrf": Profile(str(RRF(60)), str(RRF(60)), {}, {"centrality": 1.0}, 1.0, has_fixed_weights=True),
    "weighted_rrf": Profile(str(RRF(60, slope=3)), str(RRF(60)), {KEYWORD.name: 2.5}, {}, 0.1),
}
"""``joint`` is the default. ``rrf`` is reciprocal rank fusion as published, all weights 1, times 1 + centrality.
``weighted_rrf`` has measured weights, the graph's as far as it covers the query, and no boost.
docs/decisions/0049-two-profiles-of-rrf.md has the measurements."""


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
    return Profile(
        named.fusion if ranking.fusion is None else ranking.fusion,
        named.weighted_fusion if ranking.fusion is None else ranking.fusion,
        named.weights,
        named.boosts if ranking.boosts is None else ranking.boosts,
        named.centrality_weight if ranking.centrality_weight is None else ranking.centrality_weight,
        ranking.half_life_days,
        named.has_fixed_weights,
    )


def is_reranked(request: SearchRequest, settings: Settings) -> bool:
    """Whether the reranker orders the best hits."""
    return settings.requests.rerank if request.rerank is None else request.rerank


def limit_of(request: SearchRequest, settings: Settings) -> int:
    """The maximum number of hits of a page."""
    requests = settings.requests
    return min(requests.default_limit, requests.max_limit) if request.limit is None else request.limit


def timeout_ms(request: SearchRequest, settings: Settings) -> int:
    """The time limit of a request. By default that of the reranker is added to that of the search."""
    if request.timeout_ms is not None:
        return request.timeout_ms
    return settings.requests.timeout_ms + (settings.rerank.timeout_ms if is_reranked(request, settings) else 0)
