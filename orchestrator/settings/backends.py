"""Settings for where data is stored: the embedded index, servers, the write log, the cache."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from adapters.model.sources import GRAPH, KEYWORD, SOURCES, VECTOR
from adapters.servers.server import GRAPH_SCHEMES, KEYWORD_SCHEMES, VECTOR_SCHEMES, Address, Quantization
from orchestrator.settings.group import SettingsGroup, header_value, not_empty

EMBEDDED = "embedded://"
MEMORY = "memory://"
_SCHEMES = {VECTOR.name: VECTOR_SCHEMES, GRAPH.name: GRAPH_SCHEMES, KEYWORD.name: KEYWORD_SCHEMES}


class StorageSettings(SettingsGroup):
    """Where data is stored."""

    data_dir: Path = Field(Path(".trivium"), description="folder of the embedded index; one writer, many readers")
    model_dir: Path = Field(
        Path("~/.cache/trivium"),
        description="folder of a cache: the model's vector of each token, from which static encoders are fitted",
    )
    index_name: str = Field(
        "trivium",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$",
        description="name of the index on servers: lower-case letters, digits, `_` and `-`",
    )
    strict_index: bool = Field(
        False,
        description="whether an index that was built with other settings is refused; otherwise it is searched, and "
        "every response reports it",
    )

    @field_validator("data_dir", "model_dir", mode="before")
    @classmethod
    def _not_empty(cls, value: object) -> object:
        return not_empty(value)

    @field_validator("data_dir", "model_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        folder = value.expanduser().resolve()
        if folder.is_file():
            raise ValueError("it is a file, allowed are folders")
        return folder


class SourceSettings(SettingsGroup):
    """Where the sources are and how they are searched."""

    vector: str = Field(
        EMBEDDED, repr=False, description="the vector source: `embedded://`, or `qdrant+grpc://host:6334` (or `+http`)"
    )
    graph: str = Field(
        EMBEDDED, repr=False, description="the graph source: `embedded://`, or `bolt://[user:password@]host:7687`"
    )
    keyword: str = Field(
        EMBEDDED,
        repr=False,
        description="the keyword source: `embedded://`, or `opensearch+https://[user:password@]host:9200`; "
        "`SSL_CERT_FILE` names a private certificate authority",
    )
    qdrant_api_key: SecretStr = Field(SecretStr(""), description="API key of the Qdrant server, if it requires one")
    candidates: int = Field(
        200,
        ge=10,
        le=1_000,
        alias="candidates_per_source",
        description="documents requested from each source, in each collection, whatever the `limit` of a request is: "
        "at least `TRIVIUM_MAX_LIMIT`",
    )
    timeout_ms: int = Field(
        120,
        ge=1,
        le=60_000,
        alias="source_timeout_ms",
        description="time limit of the sources in ms; a request may set a shorter one",
    )
    circuit_reset_ms: int = Field(
        1_000, ge=1, le=600_000, description="ms until one request tries a source again whose circuit is open"
    )
    retry_budget_ratio: float = Field(
        0.1, ge=0, le=1, description="retries of failed searches of a server per search; 0 disables them"
    )

    @field_validator(*_SCHEMES)
    @classmethod
    def _address(cls, value: str, info: ValidationInfo) -> str:
        if value == EMBEDDED:
            return value
        try:
            address = Address.parse(value, _SCHEMES[str(info.field_name)])
        except ValueError as error:
            raise ValueError(f"{error}; or {EMBEDDED}") from error
        if address.user and info.field_name == VECTOR.name:
            raise ValueError("Qdrant has no users, give its key as TRIVIUM_QDRANT_API_KEY")
        return value

    @field_validator("qdrant_api_key")
    @classmethod
    def _header_value(cls, value: SecretStr) -> SecretStr:
        return header_value(value)

    @property
    def urls(self) -> dict[str, str]:
        """The address of each source, by name."""
        return {source.name: getattr(self, source.name) for source in SOURCES}

    def address(self, source: str) -> Address | None:
        """The address of a source's server; ``None`` if the source is embedded."""
        url = self.urls[source]
        return None if url == EMBEDDED else Address.parse(url, _SCHEMES[source])


class ServerIndexSettings(SettingsGroup):
    """How new indexes on OpenSearch and Qdrant are divided and stored; ``trivium doctor`` compares existing ones."""

    replication_factor: int | None = Field(
        None,
        ge=1,
        le=10,
        description="copies of each shard in OpenSearch and Qdrant, on different nodes; by default each server decides",
    )
    opensearch_shards: int = Field(
        1, ge=1, le=1_024, description="shards of the OpenSearch index, fixed when it is created"
    )
    qdrant_shards: int = Field(
        1, ge=1, le=1_024, description="shards of the Qdrant collection, fixed when it is created"
    )
    qdrant_on_disk: bool = Field(False, description="whether Qdrant stores the vectors in files instead of in memory")
    qdrant_quantization: Quantization = Field(
        "none",
        description="`int8`: Qdrant searches copies of the vectors with a quarter of the size and scores the best of "
        "them again; `none`",
    )
    qdrant_write_consistency: int = Field(
        1, ge=1, le=10, description="copies in Qdrant that have to apply a write before it is acknowledged"
    )

    @field_validator("qdrant_write_consistency")
    @classmethod
    def _not_above_copies(cls, value: int, info: ValidationInfo) -> int:
        copies = info.data.get("replication_factor") or 1
        if value > copies:
            raise ValueError(f"TRIVIUM_REPLICATION_FACTOR allows 1 to {copies}")
        return value


class WriteSettings(SettingsGroup):
    """Writes, and following the writes of other processes."""

    log_max_bytes: int = Field(
        1_073_741_824,
        ge=1_048_576,
        le=1_099_511_627_776,
        alias="write_log_max_bytes",
        description="maximum size of the writes that wait for an unavailable server, in bytes",
    )
    replication_retry_ms: int = Field(
        2_000, ge=100, le=600_000, description="ms between two attempts to apply waiting writes to a server"
    )
    upkeep_interval_s: int = Field(
        300,
        ge=0,
        le=604_800,
        description="seconds between two measurements of documents that change (centralities, static encoder, trust, "
        "confidence), by a process of the lowest priority, less for few documents; 0: only by `trivium tidy`",
    )
    refresh_interval_ms: int = Field(
        100, ge=10, le=60_000, description="ms between two checks for the writes of other processes"
    )


class CacheSettings(SettingsGroup):
    """The cache of responses."""

    url: str = Field(
        MEMORY,
        repr=False,
        alias="cache",
        description="where responses are cached: `memory://`, in each process; or also in a Redis that all processes "
        "share, `redis://[:password@]host:6379/0` (or `rediss://`)",
    )
    max_bytes: int = Field(
        67_108_864,
        ge=65_536,
        le=68_719_476_736,
        alias="cache_bytes",
        description="maximum size of the cache in each process, in bytes",
    )
    ttl_s: float = Field(
        60,
        ge=0,
        le=86_400,
        alias="cache_ttl_s",
        description="seconds until a cached response expires, up to a tenth less at random",
    )
    stale_while_revalidate_s: float = Field(
        60,
        ge=0,
        le=86_400,
        alias="cache_stale_while_revalidate_s",
        description="seconds after that in which it is still returned while a new one is computed",
    )
    timeout_ms: int = Field(
        20, ge=1, le=10_000, alias="cache_timeout_ms", description="time limit of one request to Redis in ms"
    )

    @field_validator("url")
    @classmethod
    def _redis(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            has_server = parts.scheme in {"redis", "rediss"} and parts.hostname and parts.port != 0
            is_redis = has_server and re.fullmatch(r"(/\d{0,6})?", parts.path)  # redis-py ignores another path
        except ValueError:
            is_redis = False
        if value != MEMORY and not is_redis:
            raise ValueError(f"allowed are {MEMORY} and redis://[:password@]host:port/number")
        return value


class FeedbackSettings(SettingsGroup):
    """What is recorded of searches."""

    kept: Literal["nothing", "ids", "texts"] = Field(
        "nothing",
        alias="feedback",
        description="what is recorded of each response, so that callers can give feedback: `nothing`, `ids` (of its "
        "hits, and a hash of the query) or `texts` (also the text of the query)",
    )
    max_bytes: int = Field(
        268_435_456,
        ge=1_048_576,
        le=1_099_511_627_776,
        alias="feedback_max_bytes",
        description="size from which on the oldest responses are deleted, first those of the largest tenant",
    )
