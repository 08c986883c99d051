"""``POST /v1/search``: request and response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from adapters.model.facets import MAX_FACET_SIZE, MAX_FACETS, Facet
from adapters.model.filter import Filter
from cache import CacheMode, Level
from fusion.values import CollapseMode
from orchestrator.schema.explain import Explanation
from orchestrator.schema.hits import ContextText, SearchHit

AUTO, HYBRID = "auto", "hybrid"
"""The modes besides the names of the sources."""
FILTER = "filter"
"""The method of hits that are listed by a filter, without a query."""

BoostName: TypeAlias = Literal["centrality", "importance", "recency", "relationship"]
ProfileName: TypeAlias = Literal["joint", "fast", "quality", "rrf", "weighted_rrf"]
MAX_COLLECTIONS, MAX_LIKE_IDS = 20, 10
"""Collections, and documents that the hits are like, that a request may name."""
EncoderName: TypeAlias = Literal["model", "static"]
EncoderUsed: TypeAlias = EncoderName | Literal["none"]
"""``none``: the query was not encoded."""
ResponseFormat: TypeAlias = Literal["hits", "context"]
MIN_TOKENS, DEFAULT_TOKENS, MAX_TOKENS = 100, 4_000, 32_000
"""Of the texts of a response."""
Weight = Annotated[float, Meta(ge=0, le=1_000)]
Name = Annotated[str, Meta(min_length=1, max_length=512)]


class BoostStrength(Struct, frozen=True, forbid_unknown_fields=True):
    """How much a boost counts.

    :param strength: 0 is nothing, 1 the whole boost.
    :param half_life_days: of ``recency``, the age at which half of it is left; 30 days by default.
    """

    strength: Annotated[float, Meta(ge=0, le=1)] = 1.0
    half_life_days: Annotated[float, Meta(gt=0, le=100_000)] | None = None


class Like(Struct, frozen=True, forbid_unknown_fields=True):
    """What the hits are like: documents, a text, or both.

    :param ids: of documents that the caller may see.
    :param collection: of the documents; it is needed if documents of several collections have an id.
    """

    ids: Annotated[tuple[Name, ...], Meta(max_length=MAX_LIKE_IDS)] = ()
    collection: Name | None = None
    text: str = ""


class SearchRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /v1/search``. Unknown fields are refused."""

    query: Annotated[
        str,
        Meta(
            description="text to search for; text in quotes has to occur word for word, except in a sentence; empty: "
            "the documents that match filter and collections are listed"
        ),
    ]
    like: Annotated[
        Like | None,
        Meta(description="with an empty query: documents and a text that the hits are like; the documents are no hits"),
    ] = None
    vector: Annotated[
        tuple[float, ...] | None,
        Meta(description="vector of the query in the space of the documents; used instead of encoding the query"),
    ] = None
    mode: Annotated[
        str,
        Meta(description="auto chooses the sources, hybrid searches all, the name of a source searches it alone"),
    ] = AUTO
    limit: Annotated[
        int | None, Meta(description="maximum number of hits; the settings have the largest and the default")
    ] = None
    cursor: (
        Annotated[
            str,
            Meta(max_length=200, description="next_cursor of the response to the same request, to get the next page"),
        ]
        | None
    ) = None
    collections: (
        Annotated[
            tuple[Name, ...],
            Meta(
                min_length=1, max_length=MAX_COLLECTIONS, description="collections to search, each as deep as one alone"
            ),
        ]
        | None
    ) = None
    include_memory: Annotated[bool, Meta(description="whether the collection memory is searched beside the others")] = (
        False
    )
    hops: Annotated[
        Annotated[int, Meta(ge=1, le=3)] | None,
        Meta(
            description="how many documents away from a name in the query, over shared names or links, the graph "
            "searches; the settings have the default, unless the walk starts from what the text sources found"
        ),
    ] = None
    filter: Filter | None = None
    sort: Annotated[
        Annotated[str, Meta(min_length=1, max_length=512)] | None,
        Meta(
            description="without a query: the field by which the documents are ordered, as a filter names it; after a "
            "hyphen from the largest value to the smallest: -created_at"
        ),
    ] = None
    facets: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=MAX_FACET_SIZE)]],
        Meta(
            max_length=MAX_FACETS,
            description="fields whose values are counted, each with the maximum number of values, or of ranges of "
            "numbers and dates: of all documents that match without a query, of all hits with one",
        ),
    ] = {}
    profile: Annotated[
        ProfileName | None,
        Meta(
            description="a way of ranking by name: joint searches the graph from the best texts; fast is joint "
            "without the graph, quality is joint with the better encoder and the reranker; rrf searches all sources "
            "at once with reciprocal rank fusion, weighted_rrf with measured weights; the settings have the default"
        ),
    ] = None
    fusion: (
        Annotated[
            str,
            Meta(max_length=200, description="a strategy by name: joint_walk(base=4, slope=12, seeds=50), rrf(k=60)"),
        ]
        | None
    ) = None
    weights: Annotated[dict[str, Weight], Meta(description="weights by source; the settings have the others")] = {}
    min_score: Annotated[
        float,
        Meta(ge=0, le=1, description="minimum fusion_score of a hit, which compares it with the best possible hit"),
    ] = 0.0
    min_confidence: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="return no hits if the confidence of the response is lower: then the documents do not answer "
            "the query; the settings have the default"
        ),
    ] = None
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=1, le=60_000)] | None,
        Meta(description="time limit of the whole request in ms; the settings have the default"),
    ] = None
    explain: bool = False
    min_generation: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)] | None,
        Meta(
            description="generation of a write that the response must show: it is waited for during half of the time "
            "limit; if it does not come, degraded says so"
        ),
    ] = None
    cache: Annotated[
        CacheMode,
        Meta(description="use a cached response; compute a new one and cache it; or compute one without caching"),
    ] = "use"
    collapse: Annotated[
        CollapseMode | None,
        Meta(
            description="one hit for each parent document, for each window of neighbouring chunks, or for each chunk; "
            "the settings have the default; url: one hit for each url"
        ),
    ] = None
    neighbors: Annotated[
        int, Meta(ge=0, le=10, description="number of chunks before and after each hit to add to its text")
    ] = 0
    highlight: Annotated[
        bool, Meta(description="whether each hit has a snippet in which the words of the query are marked")
    ] = True
    fields: (
        Annotated[
            tuple[str, ...],
            Meta(min_length=1, max_length=64, description="fields of the hits to return, besides id and collection"),
        ]
        | None
    ) = None
    text_chars: Annotated[
        Annotated[int, Meta(ge=0, le=8_388_608)] | None,
        Meta(description="maximum number of characters of the text of each hit; all by default"),
    ] = None
    format: Annotated[
        ResponseFormat,
        Meta(
            description="context: the response has one text with numbered passages for a prompt, and the hits have no "
            "text or snippet unless fields names them"
        ),
    ] = "hits"
    max_tokens: Annotated[
        Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKENS)] | None,
        Meta(
            description="maximum number of tokens of the context, 4000 by default, or of the texts of the hits "
            "together, all by default"
        ),
    ] = None
    rerank: Annotated[
        bool | None, Meta(description="whether the reranker orders the best hits; the settings have the default")
    ] = None
    boosts: Annotated[
        dict[BoostName, bool | BoostStrength],
        Meta(description="boosts to switch on or off, or their strengths; the settings have the others"),
    ] = {}


_FOR_A_LIST = {"query", "collections", "include_memory", "filter", "sort", "facets", "limit", "cursor", "mode"}
_FOR_A_RESPONSE = {"fields", "highlight", "text_chars", "format", "max_tokens", "neighbors", "explain"}
_FOR_ALL = {"timeout_ms", "cache", "min_generation"}
FIELDS_OF_RANKING = [
    name for name in SearchRequest.__struct_fields__ if name not in _FOR_A_LIST | _FOR_A_RESPONSE | _FOR_ALL
]
"""The fields of a request that a list does not have, because nothing is ranked."""


class Route(Struct, frozen=True):
    """The sources that were searched, and the reason."""

    sources: tuple[str, ...]
    reason: str


class Total(Struct, frozen=True):
    """The number of hits on all pages: exactly (``eq``), or at least (``gte``) if a source may have found more."""

    value: int
    relation: Literal["eq", "gte"]


class Degraded(Struct, frozen=True):
    """A source or a stage that failed, why, and how many ms after the start of the request."""

    source: str
    reason: str
    after_ms: float


SCHEMA_VERSION = 1
"""Version of the response schema. It grows if a field is removed or changes its meaning, not if one is added."""


class ResponseBody(Struct, frozen=True, kw_only=True):
    """The part of a response that is the same for every request with the same plan: this is what is cached.

    ``warnings``: names in the request that no document has, such as a collection or a metadata key. ``profiles``: the
    profile whose ranking each hit is of, if they are of two in turn; null for a hit that does not count for one. Then
    scores do not fall from hit to hit.
    """

    schema_version: int = SCHEMA_VERSION
    hits: tuple[SearchHit, ...]
    total: Total
    mode: str
    route: Route
    encoder: EncoderUsed
    confidence: float | None
    degraded: tuple[Degraded, ...]
    warnings: tuple[str, ...]
    index_version: str
    generation: int
    next_cursor: str | None
    context: ContextText | UnsetType = UNSET
    facets: Mapping[str, Facet] | UnsetType = UNSET
    profiles: tuple[str | None, ...] | UnsetType = UNSET
    explain: Explanation | UnsetType = UNSET


class ResponseMeta(Struct, frozen=True, kw_only=True):
    """The part of a response that belongs to one request.

    ``timeout_ms`` is its time limit. ``timings_ms`` is empty if the body was computed for another request.
    ``query_id`` is a new one for each response: feedback names it.
    ``cache``: ``miss`` was computed for this request; ``l1`` and ``l2`` were cached, in this process and in Redis;
    ``stale`` was cached and has expired, and is being computed again in the background.
    """

    cache: Level
    timeout_ms: int
    took_ms: float
    timings_ms: Mapping[str, float]
    request_id: str
    query_id: str


class SearchResponse(ResponseBody, frozen=True, kw_only=True):
    """The response to ``POST /v1/search``: a :class:`ResponseBody` and its :class:`ResponseMeta`."""

    cache: Level
    timeout_ms: int
    took_ms: float
    timings_ms: Mapping[str, float]
    request_id: str
    query_id: str
