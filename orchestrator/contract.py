"""What goes in and out of a search: the public contract, one type per JSON object.

msgspec reads and writes these on the hot path, and the OpenAPI document takes its schemas from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from adapters.document import Metadatum
from adapters.filter import Filter
from fusion import Contribution

Mode: TypeAlias = Literal["auto", "hybrid", "vector", "graph", "keyword"]
Source: TypeAlias = Literal["vector", "graph", "keyword"]
SOURCES: tuple[Source, ...] = ("vector", "graph", "keyword")

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
    collections: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=100)] | None = None
    filter: Filter | None = None
    fusion: (
        Annotated[
            str,
            Meta(max_length=200, description="a strategy by name: joint_walk(base=3, slope=10, seeds=50), rrf(k=60)"),
        ]
        | None
    ) = None
    weights: dict[Source, Weight] = {}
    min_score: Annotated[float, Meta(ge=0, le=1, description="least fusion_score of a hit")] = 0.0
    timeout_ms: Annotated[int, Meta(ge=1, le=60_000, description="milliseconds for the whole request")] = 150
    explain: bool = False
    cache: Annotated[
        Literal["use", "refresh", "bypass"], Meta(description="nothing is cached yet, so all three are the same")
    ] = "use"
    collapse: Annotated[Literal["none", "parent", "window"], Meta(description="only none, so far")] = "none"
    neighbors: Annotated[int, Meta(ge=0, le=10, description="only 0, so far")] = 0
    rerank: Annotated[bool, Meta(description="only false, so far")] = False
    boosts: Annotated[
        dict[Literal["centrality"], bool], Meta(description="priors that may sway the order; none unless asked for")
    ] = {}


class SearchHit(Struct, frozen=True):
    """One document. ``sources`` has every source that answered, null where it did not return the document."""

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


class Explanation(Struct, frozen=True):
    """What the answer was made of."""

    fusion: str
    weights: Mapping[str, float]
    depth: int
    encoder: str
    rankings: Mapping[str, tuple[ExplainedHit, ...]]
    withheld: int


class SearchResponse(Struct, frozen=True, kw_only=True):
    """The answer to ``POST /v1/search``."""

    hits: tuple[SearchHit, ...]
    mode: Mode
    route: Route
    degraded: tuple[Degraded, ...]
    index_version: str
    generation: int
    cache: Literal["miss", "l1", "l2", "stale"]
    took_ms: float
    timings_ms: Mapping[str, float]
    request_id: str
    explain: Explanation | UnsetType = UNSET


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


class CollectionCount(Struct, frozen=True):
    """A collection and how many documents of it the caller may see."""

    name: str
    documents: int


class CollectionsResponse(Struct, frozen=True):
    """The answer to ``GET /v1/collections``."""

    collections: tuple[CollectionCount, ...]


class Readiness(Struct, frozen=True):
    """The answer to ``GET /readyz``: ready while one source can answer."""

    ready: bool
    sources: Mapping[str, str]


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
