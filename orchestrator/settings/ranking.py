"""The group of settings of the ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias, get_args

from annotated_types import Ge, Le
from pydantic import Field, field_validator

from adapters.model.spelling import allowed_names
from adapters.ports.graph import Centrality
from fusion.learned import file_of
from fusion.strategy import parse
from orchestrator.schema.search import BoostName
from orchestrator.settings.group import SettingsGroup, named_items, split

_MAX_WEIGHT = 1_000.0

Strengths: TypeAlias = Mapping[BoostName, Annotated[float, Ge(0), Le(1)]]
"""The strength of each boost."""


class RankingSettings(SettingsGroup):
    """Defaults of the ranking, where a request does not set them."""

    fusion: str | None = Field(
        None,
        description="fusion strategy, instead of that of the profile: `joint_walk(base=4, slope=12, seeds=50)`, "
        "`rrf(k=60)`, `relative_score()`, `dbsf()`, `weighted_sum()`, `concatenate()`, or `learned(FILE)` with a file "
        "of `trivium tune --learn`",
    )
    weights: Mapping[str, float] = Field(
        {},
        description="weights of sources, such as `vector=1, graph=0.5`, 0 to 1000; 1 for a source that is not named. "
        "The weight of the graph is multiplied by its measured trust",
    )
    link_strengths: Mapping[str, tuple[float, float]] = Field(
        {},
        description="how far walks follow links of a type, from source to target and back, each 0 to 1, such as "
        "`part_of=0/1, cites=1/0.5`; for other types it is measured, see `trivium doctor`. `trivium tidy` applies a "
        "change",
    )
    boosts: Strengths | None = Field(
        None,
        description="boosts and their strengths, 0 to 1, such as `recency=0.3, importance`, instead of those of the "
        "profile; of `importance`, `recency`, `centrality`, `relationship`; or none",
    )
    half_life_days: float | None = Field(
        None,
        ge=0.1,
        le=100_000,
        alias="recency_half_life_days",
        description="age in days at which half of the boost `recency` is left, instead of 30",
    )
    centrality: Centrality = Field("pagerank", description="centrality measure, computed by networkx after bulk writes")
    centrality_weight: float | None = Field(
        None,
        ge=0,
        le=1,
        description="fraction by which the boost raises the score of the most central document, instead of that of "
        "the profile",
    )
    window_radius: int = Field(
        1, ge=0, le=100, description="chunks to each side in a window of `collapse: window`, unless `neighbors` is set"
    )

    @field_validator("fusion")
    @classmethod
    def _known_strategy(cls, value: str | None) -> str | None:
        if value is None or file_of(value):
            return value
        try:
            return str(parse(value))
        except ValueError as error:
            raise ValueError(f"{error}; or learned(FILE), with a file of `trivium tune --learn`") from None

    @field_validator("weights", mode="before")
    @classmethod
    def _parse_weights(cls, value: object) -> object:
        return named_items(value, "source=weight") if isinstance(value, str) else value

    @field_validator("weights")
    @classmethod
    def _bounded(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        for source, weight in value.items():
            if not 0 <= weight <= _MAX_WEIGHT:
                raise ValueError(f"the weight of {source} is {weight}, allowed are 0 to {_MAX_WEIGHT:g}")
        return dict(sorted(value.items()))

    @field_validator("link_strengths", mode="before")
    @classmethod
    def _parse_strengths(cls, value: object) -> object:
        form = "type=forward/backward"
        if isinstance(value, str):
            value = {name: tuple(pair.split("/")) for name, pair in named_items(value, form).items()}
            if not all(len(pair) == 2 for pair in value.values()):
                raise ValueError(f"write `{form}`, with commas between them")
        return value

    @field_validator("link_strengths")
    @classmethod
    def _are_fractions(cls, value: Mapping[str, tuple[float, float]]) -> Mapping[str, tuple[float, float]]:
        for name, pair in value.items():
            if not all(0 <= strength <= 1 for strength in pair):
                raise ValueError(f"the strengths of {name} are {pair[0]:g}/{pair[1]:g}, allowed are 0 to 1")
        return dict(sorted(value.items()))

    @field_validator("boosts", mode="before")
    @classmethod
    def _parse_boosts(cls, value: object) -> object:
        if isinstance(value, str):
            value = split(value)
        if isinstance(value, tuple):
            named = named_items(",".join(item if "=" in item else f"{item}=1" for item in value), "boost=strength")
            for name in named:
                if name not in get_args(BoostName):
                    raise ValueError(f"{name!r} is no boost, {allowed_names(name, get_args(BoostName))}")
            return named
        return value
