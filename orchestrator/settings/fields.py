"""Every knob: its name, type, unit, default and meaning. The README's table is made from this class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from adapters import Sensitivity, rerank
from adapters.server import GRAPH, KEYWORD, VECTOR, Address
from fusion import JointWalk, parse
from orchestrator.contract import Boost

EMBEDDED = "embedded://"
MEMORY = "memory://"
_SCHEMES = {"vector": VECTOR, "graph": GRAPH, "keyword": KEYWORD}
SECRET = {*_SCHEMES, "reranker", "cache", "qdrant_api_key", "reranker_api_key"}
"""Settings whose value is a secret, or may hold one: it is not shown when it is refused."""


class Settings(BaseSettings):
    """``TRIVIUM_`` and the field's name in capitals is the environment variable."""

    model_config = SettingsConfigDict(env_prefix="TRIVIUM_", frozen=True, extra="ignore")

    data_dir: Path = Field(Path(".trivium"), description="folder of the embedded stores; one writer, many readers")
    model_dir: Path = Field(
        Path("~/.cache/trivium"), description="folder of the embedding model, built there on first use"
    )
    vector: str = Field(
        EMBEDDED, repr=False, description="the vector source: `embedded://`, or `qdrant+grpc://host:6334` (or `+http`)"
    )
    graph: str = Field(
        EMBEDDED, repr=False, description="the graph source: `embedded://`, or `bolt://[user:password@]host:7687`"
    )
    keyword: str = Field(
        EMBEDDED,
        repr=False,
        description="the keyword source: `embedded://`, or `opensearch+https://[user:password@]host:9200`",
    )
    qdrant_api_key: SecretStr = Field(SecretStr(""), description="key of the Qdrant server, where it wants one")
    ca_file: str | None = Field(None, description="certificates that OpenSearch's is checked against")
    index_name: str = Field(
        "trivium",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$",
        description="name of the index on servers: small letters, digits, `_` and `-`",
    )
    backend_connections: int = Field(32, ge=1, le=1_000, description="connections at most to each server")
    write_timeout_ms: int = Field(
        30_000, ge=100, le=600_000, description="milliseconds that a server has for one batch of a write"
    )
    journal_max_bytes: int = Field(
        1_073_741_824, ge=1_048_576, description="bytes of writes that may wait for a server that is away"
    )
    replay_ms: int = Field(
        2_000, ge=100, le=600_000, description="milliseconds between two tries to deliver what waits in the journal"
    )
    embedder: Literal["minilm://"] = Field("minilm://", description="encoder of documents and queries")
    extractor: str = Field(
        "rules://",
        pattern=r"^(rules://|none://|python://(\w+\.)*\w+:\w+)$",
        description="what finds names in documents that bring none: `rules://` (capitalised phrases), `none://`, or "
        "`python://package.module:function`, from a text to a list of names",
    )
    query_encoder: Literal["adaptive", "model", "table"] = Field(
        "adaptive",
        description="what encodes queries: the model (better), the fitted table (50 times faster), "
        "or the model while few requests are in flight",
    )
    query_encoder_busy: int = Field(
        2, ge=1, le=1_000, description="requests in flight from which `adaptive` uses the table"
    )
    query_memo: int = Field(10_000, ge=1, le=10_000_000, description="query vectors of the model that are kept")
    fusion: str = Field(
        str(JointWalk()),
        description="strategy where a request names none: `joint_walk(base=4, slope=12, seeds=50)`, `rrf(k=60)`, "
        "`relative_score()`, `dbsf()`, `weighted_sum()` or `concatenate()`",
    )
    weight_vector: float = Field(1.0, ge=0, le=1_000, description="weight of the vector source, unless a request says")
    weight_graph: float = Field(
        1.0,
        ge=0,
        le=1_000,
        description="weight of the graph source, times how far it can be trusted, unless a request says",
    )
    weight_keyword: float = Field(
        1.0, ge=0, le=1_000, description="weight of the keyword source, unless a request says"
    )
    identifier_weight: float = Field(
        2.0, ge=0, le=1_000, description="mode `auto`: how much more keyword weighs where a query holds an identifier"
    )
    boosts: Annotated[tuple[Boost, ...], NoDecode] = Field(
        ("importance", "recency"),
        description="boosts of every request that does not say otherwise: of `importance`, `recency`, `centrality`, "
        "`relationship`; or none",
    )
    centrality: Literal["pagerank", "degree", "betweenness", "harmonic", "none"] = Field(
        "pagerank", description="what networkx computes of the whole graph after bulk writes"
    )
    centrality_weight: float = Field(
        0.1, ge=0, le=0.5, description="the most central document's score grows by this share when a request asks"
    )
    relationship_weight: float = Field(
        0.1, ge=0, le=0.5, description="the score of what the walk came nearest to grows by this share, likewise"
    )
    window_radius: int = Field(
        1,
        ge=0,
        le=100,
        description="chunks to each side that `collapse: window` takes for one, unless `neighbors` says",
    )
    expander: str = Field(
        "none://",
        pattern=r"^(none://|synonyms://.+|python://(\w+\.)*\w+:\w+)$",
        description="other words for a query's, for the keyword source alone: `none://`, `synonyms:///path/of/file` "
        "(lines `a, b` and `a => b`), or `python://package.module:function`, from a text to a list of texts",
    )
    reranker: str = Field(
        rerank.NONE,
        repr=False,
        description="who orders the best hits where a request asks: `none://`, `chat+https://host/v1` (chat "
        "completions), `rerank+https://host/v1/rerank` (a cross-encoder), or `python://package.module:function`, "
        "from a query and texts to scores",
    )
    reranker_model: str = Field("", description="the model that the reranker is asked for")
    reranker_api_key: SecretStr = Field(SecretStr(""), description="key of the reranker, where it wants one")
    rerank_top: int = Field(20, ge=1, le=100, description="hits that a reranker is given at most")
    rerank_chars: int = Field(1_000, ge=1, le=100_000, description="characters of each of them")
    rerank_budget_chars: int = Field(
        16_000, ge=1_000, le=1_000_000, description="characters of all of them together, shared evenly"
    )
    rerank_timeout_ms: int = Field(
        5_000, ge=1, le=60_000, description="milliseconds that a reranker has at most, within those of the request"
    )
    rerank_clearance: Sensitivity = Field(
        "normal", description="texts above this are not sent to a reranker, and keep their places"
    )
    strict_index: bool = Field(
        False,
        description="whether a store that was built otherwise than the settings say is refused; else it is asked, "
        "and every answer says so",
    )
    depth: int = Field(100, ge=10, le=1_000, description="hits that each source is asked for, at least")
    overfetch: int = Field(
        3, ge=1, le=20, description="hits that each source is asked for, in each collection, per hit of `limit`"
    )
    source_timeout_ms: int = Field(
        120, ge=1, le=60_000, description="milliseconds that one source has at most; a request may give less"
    )
    breaker_failures: int = Field(
        5, ge=1, le=1_000_000, description="failures in a row after which a source is left alone for a while"
    )
    breaker_pause_ms: int = Field(
        1_000, ge=1, le=600_000, description="milliseconds until one request tries a source again that is left alone"
    )
    retry_share: float = Field(
        0.1,
        ge=0,
        le=1,
        description="second attempts at a search of a server, per first one: after a lost connection, or beside a slow "
        "attempt; 0: none",
    )
    hedge_ms: int = Field(
        0,
        ge=0,
        le=60_000,
        description="milliseconds without an answer after which a server is asked a second time, beside the first; "
        "0: never",
    )
    max_in_flight: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="searches that each process works on at once, what the cache answers not counted; by default 2 "
        "where nothing is asked over a network (they take turns on one processor anyway), else 64",
    )
    max_waiting: int = Field(
        256, ge=0, le=1_000_000, description="searches that may wait for their turn in each process; more are refused"
    )
    cache: str = Field(
        MEMORY,
        repr=False,
        description="where answers are kept: `memory://`, in each process; or there and in a Redis that all share, "
        "`redis://[:password@]host:6379/0` (or `rediss://`)",
    )
    cache_bytes: int = Field(
        67_108_864, ge=65_536, le=68_719_476_736, description="bytes of answers that each process keeps at most"
    )
    cache_ttl_s: float = Field(
        60, ge=0, le=86_400, description="seconds that an answer is fresh, a tenth less at random"
    )
    cache_stale_s: float = Field(
        60, ge=0, le=86_400, description="seconds after that in which it is still given, while it is computed anew"
    )
    cache_timeout_ms: int = Field(20, ge=1, le=10_000, description="milliseconds that Redis is waited for")
    cache_poll_ms: int = Field(
        1_000, ge=10, le=600_000, description="milliseconds between two looks for others' writes, if no message came"
    )
    ranking_memo: int = Field(
        1_000, ge=1, le=10_000_000, description="rankings, and sets of centralities, that each process keeps"
    )
    keys_file: Path | None = Field(
        None,
        description="file of API keys, as `trivium keys` writes it, read again when it changes; without one everybody "
        "may do everything, from this machine alone",
    )
    default_collections: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="collections searched where a request names none; empty: all but `memory` and `history`"
    )
    open_clearance: Sensitivity = Field(
        "normal", description="what callers without a key may see: `public`, `normal`, `sensitive`, `restricted`"
    )
    tenant: str = Field("default", min_length=1, max_length=512, description="scope of callers without a key")
    environment: str = Field("default", min_length=1, max_length=512, description="scope of callers without a key")
    max_query_chars: int = Field(4_096, ge=1, le=1_000_000, description="characters of a query")
    max_document_bytes: int = Field(1_048_576, ge=1_024, le=67_108_864, description="bytes of one document's line")
    max_body_bytes: int = Field(67_108_864, ge=1_024, le=1_073_741_824, description="bytes of a request's body")
    max_connections: int = Field(1_024, ge=1, le=1_000_000, description="connections to each process; more are refused")
    max_header_bytes: int = Field(32_768, ge=1_024, le=1_048_576, description="bytes of a request's headers")
    receive_timeout_ms: int = Field(
        30_000,
        ge=100,
        le=3_600_000,
        description="milliseconds that a caller has to send a request's headers, and its body",
    )
    drain_ms: int = Field(
        1_000,
        ge=0,
        le=600_000,
        description="milliseconds after SIGTERM in which requests are still taken, while `/readyz` says no",
    )
    grace_ms: int = Field(
        10_000, ge=0, le=600_000, description="milliseconds after that for what is under way, before it is cut off"
    )
    follow_ms: int = Field(
        100, ge=10, le=60_000, description="milliseconds between two looks for what another process has written"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")

    @field_validator("vector", "graph", "keyword")
    @classmethod
    def _address(cls, value: str, info: ValidationInfo) -> str:
        if value == EMBEDDED:
            return value
        try:
            at = Address.parse(value, _SCHEMES[str(info.field_name)])
        except ValueError as error:
            raise ValueError(f"{error}; or {EMBEDDED}") from error
        if at.user and info.field_name == "vector":
            raise ValueError("Qdrant knows no users, give its key as TRIVIUM_QDRANT_API_KEY")
        return value

    @field_validator("qdrant_api_key", "reranker_api_key")
    @classmethod
    def _key(cls, value: SecretStr) -> SecretStr:
        key = value.get_secret_value().strip()
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise ValueError("a key is made of printable ASCII characters without spaces")
        return SecretStr(key)

    @field_validator("cache")
    @classmethod
    def _cache(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            redis = parts.scheme in {"redis", "rediss"} and parts.hostname and parts.port != 0
        except ValueError:
            redis = False
        if value != MEMORY and not redis:
            raise ValueError(f"allowed are {MEMORY} and redis://[:password@]host:port/number")
        return value

    @field_validator("reranker")
    @classmethod
    def _reranker(cls, value: str) -> str:
        rerank.check(value)
        return value

    @field_validator("fusion")
    @classmethod
    def _known_strategy(cls, value: str) -> str:
        return str(parse(value))

    @field_validator("default_collections", "boosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value

    @field_validator("data_dir", "model_dir", "keys_file", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if value == "":
            raise ValueError("it must be named")
        return value

    @field_validator("data_dir", "model_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @field_validator("keys_file")
    @classmethod
    def _expand_link(cls, value: Path | None) -> Path | None:
        # Its links stay: where secrets are mounted, a file is changed by turning a link elsewhere.
        return value and value.expanduser().absolute()
