"""Every setting: its name, type, unit, default and meaning. ``backends`` has those for where data is stored.

A setting's environment variable is ``TRIVIUM_`` and its alias in capitals; where a field has no alias, its own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from adapters import rerank
from adapters.model.document import PARTS, EncodedPart
from adapters.ports import embedder_address
from fusion.joint_walk import JointWalk
from fusion.learned import file_of
from fusion.rrf import RRF
from fusion.values import CollapseMode
from orchestrator.schema.search import EncoderName, ProfileName
from orchestrator.settings.access import AccessSettings
from orchestrator.settings.backends import (
    CacheSettings,
    FeedbackSettings,
    ServerIndexSettings,
    SourceSettings,
    StorageSettings,
    WriteSettings,
)
from orchestrator.settings.group import (
    SettingsGroup,
    header_value,
    profile_and_share,
    split,
)
from orchestrator.settings.ranking import RankingSettings

_SYNONYMS = "synonyms://"
_MAX_LIMIT = 1_000
"""The largest number of hits of a page that a setting may allow."""


class EncodingSettings(SettingsGroup):
    """Text to vectors, entities and synonyms."""

    embedder: str = Field(
        embedder_address.MINILM,
        description="encodes documents and queries: `minilm://`; `none://384`, if they all bring vectors of so many "
        "numbers; or `python://package.module:function`, from a list of texts to a list of vectors. Vectors are "
        "compared by their cosine",
    )
    embedding_text: tuple[EncodedPart, ...] = Field(
        PARTS,
        description="what is encoded with the text of a document: `title`, `headings` (`heading_path`), `summary` "
        "(`local_summary`), `boosters` (`semantic_boosters`), `neighbors` (`text_before`, `text_after`); may be empty",
    )
    query_encoder: EncoderName = Field(
        "model",
        description="what encodes queries: `model` (better), or `static` (20 times faster; fitted to the documents by "
        "`trivium index` and `trivium tidy`)",
    )
    entity_extractor: str = Field(
        "rules://",
        pattern=r"^(rules://|none://|python://(\w+\.)*\w+:\w+)$",
        description="finds entities in documents without `entities`: `rules://` (capitalised phrases), `none://`, or "
        "`python://package.module:function`, from a text to a list of names",
    )
    query_expansion: str = Field(
        "none://",
        pattern=r"^(none://|synonyms://.+|python://(\w+\.)*\w+:\w+)$",
        description="finds synonyms of a query for the keyword source: `none://`, `synonyms:///path/of/file` "
        "(lines `a, b` and `a => b`), or `python://package.module:function`, from a text to a list of texts",
    )

    @field_validator("embedder")
    @classmethod
    def _check_embedder(cls, value: str) -> str:
        embedder_address.check(value)
        return value

    @field_validator("embedding_text", mode="before")
    @classmethod
    def _split_parts(cls, value: object) -> object:
        return split(value)

    @field_validator("query_encoder")
    @classmethod
    def _check_query_encoder(cls, value: EncoderName, others: ValidationInfo) -> EncoderName:
        embedder = others.data.get("embedder", embedder_address.MINILM)
        if value == "static" and embedder != embedder_address.MINILM:
            raise ValueError(f"it is fitted to {embedder_address.MINILM}, and TRIVIUM_EMBEDDER is {embedder}")
        return value

    @property
    def query_encoders(self) -> tuple[EncoderName, ...]:
        """What may encode a query: the model also encodes queries without a word of the static encoder."""
        if embedder_address.given_dimension(self.embedder) is not None:
            return ()
        return ("model", "static") if self.query_encoder == "static" else ("model",)


class RequestSettings(SettingsGroup):
    """Defaults and limits of search requests."""

    profile: ProfileName = Field(
        "joint",
        description="how results are ranked: `joint` (the graph is searched from the best texts; fusion "
        f"`{JointWalk()}`), `fast` (`joint` without the graph, half as deep, with the static encoder if "
        "`TRIVIUM_QUERY_ENCODER` is `static`), `quality` (`joint` with the model as the encoder, and the reranker if "
        f"there is one), `rrf` (all sources at once with weight 1; fusion `{RRF()}`, boost `centrality`) or "
        "`weighted_rrf` (`rrf` with measured weights, the graph as far as it covers the query, and no boost)",
    )
    shadow: str = Field(
        "",
        description="`profile:share`, such as `rrf:0.05`: this share of the searches is computed again with that "
        "profile after the response, and the rankings are compared in metrics and log; empty: none",
    )
    interleave: str = Field(
        "",
        description="`profile:share`, such as `rrf:0.1`: this share of the queries gets the hits of that profile and "
        "of `TRIVIUM_PROFILE` in turn, so that feedback says which users prefer; needs `TRIVIUM_FEEDBACK`; empty: none",
    )
    hops: int = Field(
        2,
        ge=1,
        le=3,
        description="how many documents away from a name in the query the graph searches, in mode `graph` and in "
        "strategies without seeds such as `rrf`",
    )
    collapse: CollapseMode = Field(
        "parent",
        description="one hit for each: `parent` document, `window` of neighbouring chunks, `url`, or chunk (`none`)",
    )
    rerank: bool = Field(False, description="whether the reranker orders the best hits")
    min_confidence: float = Field(
        0.0,
        ge=0,
        le=1,
        description="responses with a lower confidence have no hits; 0.5 rejects nine in ten questions "
        "that the documents do not answer",
    )
    timeout_ms: int = Field(
        150,
        ge=1,
        le=60_000,
        alias="request_timeout_ms",
        description="time limit of a search in ms; the reranker has its own on top of it",
    )
    default_limit: int = Field(
        10, ge=1, le=_MAX_LIMIT, description="hits of a page if a request names no `limit`, at most `TRIVIUM_MAX_LIMIT`"
    )
    max_limit: int = Field(50, ge=1, le=_MAX_LIMIT, description="the largest `limit` of a request")

    @field_validator("shadow", "interleave")
    @classmethod
    def _check_share(cls, value: str) -> str:
        if value:
            profile_and_share(value)
        return value

    @property
    def shadowed(self) -> tuple[ProfileName, float] | None:
        """The profile of shadow searches, and their share."""
        return profile_and_share(self.shadow) if self.shadow else None

    @property
    def interleaved(self) -> tuple[ProfileName, float] | None:
        """The profile whose hits are mixed with those of the profile of the settings, and the share of the queries."""
        return profile_and_share(self.interleave) if self.interleave else None


class RerankSettings(SettingsGroup):
    """The reranker."""

    url: str = Field(
        rerank.NONE,
        repr=False,
        alias="reranker",
        description="orders the best hits on request: `none://`, `chat+https://host/v1` (chat "
        "completions), `rerank+https://host/v1/rerank` (a cross-encoder), or `python://package.module:function`, "
        "from a query and texts to scores",
    )
    model: str = Field("", alias="reranker_model", description="the model that is requested from the reranker")
    api_key: SecretStr = Field(
        SecretStr(""), alias="reranker_api_key", description="API key of the reranker, if it requires one"
    )
    max_hits: int = Field(20, ge=1, le=100, alias="rerank_top", description="maximum number of hits to rerank")
    timeout_ms: int = Field(
        5_000,
        ge=1,
        le=60_000,
        alias="rerank_timeout_ms",
        description="time limit of the reranker in ms, within that of the request",
    )

    @field_validator("url")
    @classmethod
    def _reranker(cls, value: str) -> str:
        rerank.check(value)
        return value

    @field_validator("api_key")
    @classmethod
    def _header_value(cls, value: SecretStr) -> SecretStr:
        return header_value(value)


class ServerSettings(SettingsGroup):
    """The process."""

    search_concurrency: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="searches that each process computes at the same time, not counting the cache; by default 1 if "
        "all sources are embedded (such a search never waits), else 64",
    )
    client_timeout_ms: int = Field(
        30_000, ge=100, le=3_600_000, description="ms that a client has to send a request and to read the response"
    )
    shutdown_grace_ms: int = Field(
        10_000,
        ge=0,
        le=600_000,
        description="ms after SIGTERM until running requests are cancelled; for the first tenth new requests are "
        "still accepted, while `/readyz` fails",
    )
    console: bool = Field(True, description="whether `GET /` serves the console, a web page for searching")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level to log")


class Settings(BaseModel):
    """All settings. Immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    storage: StorageSettings = Field(default_factory=StorageSettings)  # relative to the current working folder
    sources: SourceSettings = SourceSettings()
    server_indexes: ServerIndexSettings = ServerIndexSettings()
    encoding: EncodingSettings = EncodingSettings()
    requests: RequestSettings = RequestSettings()
    ranking: RankingSettings = RankingSettings()
    rerank: RerankSettings = RerankSettings()
    writes: WriteSettings = WriteSettings()
    cache: CacheSettings = CacheSettings()
    access: AccessSettings = AccessSettings()
    feedback: FeedbackSettings = FeedbackSettings()
    server: ServerSettings = ServerSettings()

    @classmethod
    def of(cls, **values: object) -> Settings:
        """Settings by the names of :func:`setting_fields`; the others have their defaults.

        :raises pydantic.ValidationError: if a value is not allowed.
        :raises KeyError: for an unknown name.
        """
        return cls().changed(**values)

    def changed(self, **values: object) -> Settings:
        """The same settings with some values changed; parameters and errors as in :meth:`of`."""
        by_group: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            by_group.setdefault(setting_fields()[name][0], {})[name] = value
        groups = {}
        for group_name, group_values in by_group.items():
            group = getattr(self, group_name)
            # By the names of the settings, so that an error names the setting, not the field of the group.
            present = {info.alias or field: getattr(group, field) for field, info in type(group).model_fields.items()}
            groups[group_name] = type(group).model_validate(present | group_values)
        return self.model_copy(update=groups)

    @property
    def files_of_ranking(self) -> tuple[Path, ...]:
        """The files that decide responses by their content: of synonyms, and of learned fusion."""
        expansion, learned = self.encoding.query_expansion, file_of(self.ranking.fusion or "")
        synonyms = expansion.removeprefix(_SYNONYMS) if expansion.startswith(_SYNONYMS) else None
        return tuple(Path(path) for path in (synonyms, learned) if path is not None)

    def value(self, name: str) -> Any:
        """The value of a setting by its name in :func:`setting_fields`."""
        group, field, _ = setting_fields()[name]
        return getattr(getattr(self, group), field)


def setting_fields() -> dict[str, tuple[str, str, FieldInfo]]:
    """Every setting by its name, lower-case and without prefix: its group, its field there, and the field's bounds."""
    return dict(_fields())


def _fields() -> Iterator[tuple[str, tuple[str, str, FieldInfo]]]:
    for group, info in Settings.model_fields.items():
        model = info.annotation
        if isinstance(model, type) and issubclass(model, SettingsGroup):
            for field, field_info in model.model_fields.items():
                yield field_info.alias or field, (group, field, field_info)
