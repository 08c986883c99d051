"""What goes in and out of a search: the public contract, one type per JSON object.

msgspec reads and writes these on the hot path, and the OpenAPI document takes its schemas from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from adapters.document import Metadatum
from adapters.filter import Filter
from cache import Level, Use
from fusion import Collapse, Contribution

Mode: TypeAlias = Literal["auto", "hybrid", "vector", "graph", "keyword"]
Source: TypeAlias = Literal["vector", "graph", "keyword"]
SOURCES: tuple[Source, ...] = ("vector", "graph", "keyword")
Boost: TypeAlias = Literal["centrality", "importance", "recency", "relationship"]

Weight = Annotated[float, Meta(ge=0, le=1_000)]
Name = Annotated[str, Meta(min_length=1, max_length=512)]


class SearchRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /v1/search``. Unknown fields are refused."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            description="what is searched for; a query of nothing but text in double quotes demands that text",
        ),
    ]
    vector: Annotated[
        tuple[float, ...] | None,
        Meta(description="the query's vector, in the documents' space; taken instead of encoding the query"),
    ] = None
    mode: Mode = "auto"
    limit: Annotated[int, Meta(ge=1, le=50, description="hits at most")] = 10
    cursor: (
        Annotated[str, Meta(max_length=200, description="next_cursor of an answer to the same request, to go on there")]
        | None
    ) = None
    collections: (
        Annotated[
            tuple[Name, ...],
            Meta(min_length=1, max_length=20, description="searched beside each other, each as deep as one alone"),
        ]
        | None
    ) = None
    filter: Filter | None = None
    fusion: (
        Annotated[
            str,
            Meta(max_length=200, description="a strategy by name: joint_walk(base=4, slope=12, seeds=50), rrf(k=60)"),
        ]
        | None
    ) = None
    weights: dict[Source, Weight] = {}
    min_score: Annotated[float, Meta(ge=0, le=1, description="least fusion_score of a hit")] = 0.0
    timeout_ms: Annotated[int, Meta(ge=1, le=60_000, description="milliseconds for the whole request")] = 150
    explain: bool = False
    cache: Annotated[
        Use,
        Meta(description="take what is kept; compute anew and keep that; or compute anew and keep nothing"),
    ] = "use"
    collapse: Annotated[
        Collapse,
        Meta(description="one hit for each parent, or for each window of neighbouring chunks; or every hit by itself"),
    ] = "parent"
    neighbors: Annotated[
        int, Meta(ge=0, le=10, description="chunks before and after each hit that its text is given with")
    ] = 0
    rerank: Annotated[bool, Meta(description="let the reranker order the best hits")] = False
    boosts: Annotated[
        dict[Boost, bool], Meta(description="what may sway the order, on or off; the settings say what is on otherwise")
    ] = {}


class Reranked(Struct, frozen=True):
    """Where the reranker put a hit, from 1, and its score on the reranker's own scale, if it gave one."""

    rank: int
    score: float | None


class SearchHit(Struct, frozen=True):
    """One document. ``sources`` has every source that answered, null where it did not return the document.

    To cite it: ``url``, ``parent_id``, ``chunk_index``, and ``span``, the first character of ``text`` that is its own
    and the first that no longer is: what is outside was asked for as ``neighbors``. ``window_id`` names the chunks
    that ``collapse: window`` takes for one.
    """

    id: str
    parent_id: str | None
    collection: str
    title: str
    text: str
    url: str | None
    metadata: dict[str, Metadatum]
    score: float
    fusion_score: float
    sources: Mapping[str, Contribution | None]
    boosts: Mapping[str, float]
    chunk_index: int | None
    window_id: str | None
    span: tuple[int, int]
    rerank: Reranked | UnsetType = UNSET


class Route(Struct, frozen=True):
    """Which sources were asked, and why those."""

    sources: tuple[str, ...]
    reason: str


class Degraded(Struct, frozen=True):
    """A source, or a stage, that did not do its part; what is missing is missing because of it."""

    source: str
    reason: str
    after_ms: float


class ExplainedHit(Struct, frozen=True):
    """One hit of one source before fusion."""

    id: str
    rank: int
    score: float


class Removed(Struct, frozen=True):
    """What did not become a hit, by the stage that stopped it.

    ``filter``: documents that the caller may see and the request's filter and collections leave out. ``collapsed``:
    each document with the one that it gave way to. ``withheld`` must be 0: a source returned what it was told not to.
    """

    filter: int
    min_score: int
    collapsed: Mapping[str, str]
    deleted: int
    withheld: int


class Explanation(Struct, frozen=True):
    """What the answer was made of. ``expansions`` is what keyword was asked beside the query's own words."""

    fusion: str
    weights: Mapping[str, float]
    boosts: tuple[str, ...]
    collapse: Collapse
    depth: int
    timeout_ms: float
    encoder: str
    expansions: tuple[str, ...]
    rankings: Mapping[str, tuple[ExplainedHit, ...]]
    removed: Removed


class Answer(Struct, frozen=True, kw_only=True):
    """What an answer says of the documents: the same whoever computed it, and when."""

    hits: tuple[SearchHit, ...]
    mode: Mode
    route: Route
    degraded: tuple[Degraded, ...]
    index_version: str
    generation: int
    next_cursor: str | None
    explain: Explanation | UnsetType = UNSET


class Delivery(Struct, frozen=True, kw_only=True):
    """What an answer says of itself: where it came from, to which request, and where the time went.

    ``cache``: ``miss`` was computed now; ``l1`` and ``l2`` were kept, in this process and in Redis; ``stale`` was kept
    for longer than is good, and is being computed anew.
    """

    cache: Level
    took_ms: float
    timings_ms: Mapping[str, float]
    request_id: str


class SearchResponse(Answer, frozen=True, kw_only=True):
    """The answer to ``POST /v1/search``: an :class:`Answer` and its :class:`Delivery`."""

    cache: Level
    took_ms: float
    timings_ms: Mapping[str, float]
    request_id: str


class LineOutcome(Struct, frozen=True, omit_defaults=True):
    """What became of one line of a bulk request; lines are counted from 1.

    ``incomplete``: the stores that ``missing`` names do not hold it, with the reason. It is on disk, and what could not
    be delivered is delivered later; what a store refused is not.
    """

    line: int
    status: Literal["indexed", "incomplete", "rejected"]
    id: str | None = None
    error: str | None = None
    missing: Mapping[str, str] = {}


class BulkResponse(Struct, frozen=True):
    """The answer to ``POST /v1/documents``: good lines are kept, whatever stands between them."""

    indexed: int
    incomplete: int
    rejected: int
    generation: int
    lines: tuple[LineOutcome, ...]


class DeleteResponse(Struct, frozen=True, omit_defaults=True):
    """The answer to ``DELETE /v1/documents/{id}``; ``missing`` as in :class:`LineOutcome`."""

    id: str
    deleted: bool
    generation: int
    missing: Mapping[str, str] = {}


class CacheLevel(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one level of the cache did since this process began; ages are in seconds."""

    hits: int
    misses: int
    entries: int | None = None
    bytes: int | None = None
    stale: int = 0
    stored: int = 0
    evictions: int = 0
    errors: int = 0
    skipped: int = 0
    mean_age_s: float = 0.0
    hit_rate: float = 0.0
    state: str | None = None


class CacheReport(Struct, frozen=True):
    """The answer to ``GET /v1/cache``: ``l1`` in this process, ``l2`` in Redis, and what is kept of answers' parts.

    ``joined`` counts requests that found the same one under way, and waited for its answer.
    """

    levels: Mapping[str, CacheLevel]
    flights: int
    joined: int


class CollectionCount(Struct, frozen=True):
    """A collection and how many documents of it the caller may see."""

    name: str
    documents: int


class CollectionsResponse(Struct, frozen=True):
    """The answer to ``GET /v1/collections``."""

    collections: tuple[CollectionCount, ...]


class Readiness(Struct, frozen=True, omit_defaults=True):
    """The answer to ``GET /readyz``: ready while one source can answer; not when it is ``draining``, about to end."""

    ready: bool
    sources: Mapping[str, str]
    draining: bool = False


class Liveness(Struct, frozen=True):
    """The answer to ``GET /livez``."""

    live: bool


class Problem(Struct, frozen=True, omit_defaults=True):
    """RFC 9457, section 3. ``errors`` names each thing that is wrong where there are several."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    request_id: str | None = None
    errors: tuple[str, ...] = ()
