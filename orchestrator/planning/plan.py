"""A plan: everything that is decided about a request before any source is searched.

A plan is complete: no later stage reads a field of the request, or a setting, that decides the response. It has a
canonical encoding, which is a part of the cache key. What changes no response is not in it: time limits and the cache
mode.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from adapters import Scope, Sensitivity
from adapters.model.filter import Filter
from fusion.confidence import Calibrations
from fusion.values import CollapseMode, DocId
from orchestrator.planning.likeness import LikePlan
from orchestrator.planning.listing import FacetPlan, ListingPlan
from orchestrator.planning.page_token import PageToken
from orchestrator.schema.search import BoostName, EncoderName, ProfileName, ResponseFormat

DAY_S = 86_400

# ``gc=False``: thousands of plans are cached, which the garbage collector would visit repeatedly. Their types, and
# those of filters, cannot form cycles.


class CallPlan(Struct, frozen=True, gc=False):
    """The search of one source: its stage, and a filter for each search that it takes."""

    source: str
    stage: int
    filters: tuple[Filter, ...]


class BoostPlan(Struct, frozen=True, gc=False):
    """A boost and its weight.

    :param half_life_days: of ``recency``; ``None``: that of the boost.
    """

    name: BoostName
    weight: float = 1.0
    half_life_days: float | None = None


class RankingPlan(Struct, frozen=True, gc=False):
    """Everything that decides the order of the hits.

    :param vector: that the request brings, as ``unit_vector`` (query_vector.py) returns it; ``None``:
        the text is encoded.
    :param calls: in the order in which responses name the sources.
    :param hops: how many documents away the graph searches; ``None``: the default of the fusion.
    :param depth: documents to request from each source, in each collection.
    :param left_out: the collections that are not searched, if the request names none: then each of the others is
        searched by itself. ``None`` if the filters of ``calls`` are complete.
    :param weights: weights of every source.
    :param min_confidence: a response with a lower confidence has no hits.
    :param calibrations: of confidence, by the sources that give the evidence.
    :param may_skip_stage_2: whether stage 2 is left out if the text sources agree and the query mentions no entity.
    :param encoder: the encoder of the query.
    :param day: ages are counted from its beginning; in days since the epoch.
    :param seeds: documents that the graph starts from, before all others; the stage that reads them adds them.
    """

    scope: Scope
    clearance: Sensitivity
    text: str
    vector: bytes | None
    calls: tuple[CallPlan, ...]
    hops: int | None
    depth: int
    weights: Mapping[str, float]
    access: Filter
    filter: Filter
    left_out: tuple[str, ...] | None
    strategy: str
    boosts: tuple[BoostPlan, ...]
    collapse: CollapseMode
    window_radius: int
    min_score: float
    min_confidence: float
    calibrations: Calibrations
    may_skip_stage_2: bool
    encoder: EncoderName
    day: int
    seeds: tuple[DocId, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources to search."""
        return tuple(call.source for call in self.calls)


class RerankPlan(Struct, frozen=True, gc=False):
    """The hits that the reranker gets, the number of characters, and the highest sensitivity."""

    reranker: str
    model: str
    max_hits: int
    max_chars: int
    max_total_chars: int
    clearance: Sensitivity


class PagePlan(Struct, frozen=True, gc=False):
    """The part of the ranking to return, and what to add to its hits.

    :param fields: of the hits to return, sorted; ``None``: all.
    :param text_chars: maximum number of characters of the text of each hit; ``None``: all.
    :param max_tokens: of the context, or of the texts of all hits together; ``None``: all.
    """

    offset: int
    limit: int
    neighbors: int
    rerank: RerankPlan | None
    explain: bool
    highlight: bool
    fields: tuple[str, ...] | None
    text_chars: int | None
    format: ResponseFormat
    max_tokens: int | None
    ranking_hash: bytes
    token: PageToken | None


class Plan(Struct, frozen=True, gc=False):
    """Everything decided about a request before any source is searched.

    :param profile: has the fusion strategy and the boosts, unless the request or a setting overrides them.
    :param collections: that the request names.
    :param listing: the order of a list, if there is neither a query nor ``like``.
    :param like: what the hits are like, if there is no query.
    :param other: that of another profile, whose hits are mixed with those of this plan.
    """

    mode: str
    profile: ProfileName
    reason: str
    collections: tuple[str, ...]
    ranking: RankingPlan
    page: PagePlan
    listing: ListingPlan | None = None
    like: LikePlan | None = None
    facets: tuple[FacetPlan, ...] = ()
    other: Plan | None = None
