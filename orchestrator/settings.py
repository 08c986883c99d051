"""Every knob, read once from the environment. The README's table is made from this class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from adapters import Sensitivity
from fusion import parse


class SettingsError(ValueError):
    """A setting has a value that is not allowed; the message names it and what is."""


class Settings(BaseSettings):
    """``TRIVIUM_`` and the field's name in capitals is the environment variable."""

    model_config = SettingsConfigDict(env_prefix="TRIVIUM_", frozen=True, extra="ignore")

    data_dir: Path = Field(Path(".trivium"), description="folder of the embedded stores; one writer, many readers")
    model_dir: Path = Field(
        Path("~/.cache/trivium"), description="folder of the embedding model, built there on first use"
    )
    vector: Literal["embedded://"] = Field("embedded://", description="the vector source")
    graph: Literal["embedded://"] = Field("embedded://", description="the graph source")
    keyword: Literal["embedded://"] = Field("embedded://", description="the keyword source")
    embedder: Literal["minilm://"] = Field("minilm://", description="encoder of documents and queries")
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
        "rrf(k=60)", description="strategy where a request names none: `rrf(k=1…10000)` or `concatenate()`"
    )
    centrality: Literal["pagerank", "degree", "betweenness", "harmonic", "none"] = Field(
        "pagerank", description="what networkx computes of the whole graph after bulk writes"
    )
    centrality_weight: float = Field(
        0.1, ge=0, le=0.5, description="the most central document's score grows by this share when a request asks"
    )
    depth: int = Field(50, ge=10, le=1_000, description="hits that each source is asked for, at least")
    overfetch: int = Field(3, ge=1, le=20, description="hits that each source is asked for, per hit of `limit`")
    source_timeout_ms: int = Field(
        120, ge=1, le=60_000, description="milliseconds that one source has at most; a request may give less"
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
    follow_ms: int = Field(
        100, ge=10, le=60_000, description="milliseconds between two looks for what another process has written"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")

    @field_validator("fusion")
    @classmethod
    def _known_strategy(cls, value: str) -> str:
        return str(parse(value))

    @field_validator("default_collections", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value

    @field_validator("data_dir", "model_dir", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if value == "":
            raise ValueError("a folder must be named")
        return value

    @field_validator("data_dir", "model_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser().resolve()


def read(**given: object) -> Settings:
    """Settings from the environment, with ``given`` over them.

    :raises SettingsError: if a value is not allowed.
    """
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks them, that is its work
    except ValidationError as error:
        first = error.errors()[0]
        name = "TRIVIUM_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name} is {first['input']!r}: {first['msg'].lower()}") from error
