"""The values of a request that it does not set: from the settings, or from the profile that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion import RRF, JointWalk
from orchestrator.schema.search import BoostName, ProfileName, SearchRequest
from orchestrator.settings.groups import Settings


@dataclass(frozen=True, slots=True)
class Profile:
    """A named way of ranking: the fusion strategy, the boosts that are on, and the weight of the boost ``centrality``.

    A strategy with seeds searches the graph after the text sources, any other one all sources at the same time.
    """

    fusion: str
    boosts: tuple[BoostName, ...]
    centrality_weight: float


PROFILES: Mapping[ProfileName, Profile] = {
    "joint": Profile(str(JointWalk()), ("importance", "recency"), 0.1),
    "rrf": Profile(str(RRF(60)), ("centrality", "importance", "recency"), 1.0),
}
"""``joint`` is the default. ``rrf`` is reciprocal rank fusion as published, with centrality at its full strength."""


BY_SCORE = str(JointWalk())
"""The strategy that orders the hits of one source as it does, also if it searched several collections."""


def profile_of(request: SearchRequest, settings: Settings) -> Profile:
    """The profile that a request names, as it is; otherwise that of the settings, with what they change in it."""
    if request.profile is not None:
        return PROFILES[request.profile]
    return default_profile(settings)


def default_profile(settings: Settings) -> Profile:
    """The profile of the settings, with what they change in it."""
    ranking, named = settings.ranking, PROFILES[settings.requests.profile]
    return Profile(
        named.fusion if ranking.fusion is None else ranking.fusion,
        named.boosts if ranking.boosts is None else ranking.boosts,
        named.centrality_weight if ranking.centrality_weight is None else ranking.centrality_weight,
    )


def is_reranked(request: SearchRequest, settings: Settings) -> bool:
    """Whether the reranker orders the best hits."""
    return settings.requests.rerank if request.rerank is None else request.rerank


def timeout_ms(request: SearchRequest, settings: Settings) -> int:
    """The time limit of a request. By default the reranker has its own time limit on top of that of the search."""
    if request.timeout_ms is not None:
        return request.timeout_ms
    return settings.requests.timeout_ms + (settings.rerank.timeout_ms if is_reranked(request, settings) else 0)
