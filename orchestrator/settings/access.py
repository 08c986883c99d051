"""Settings of who may call the service, and on whose behalf."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from adapters import Sensitivity
from adapters.model.protection import ALLOWED_NAMES, check_name
from orchestrator.settings.group import SettingsGroup, not_empty, split


class AccessSettings(SettingsGroup):
    """API keys, and what callers without a key may see."""

    keys_file: Path | None = Field(
        None,
        description="file of API keys, as `trivium keys` writes it, read again when it changes; without one every "
        "caller may do everything, on a loopback address only",
    )
    default_collections: tuple[str, ...] = Field(
        (), description="collections to search if a request names none; empty: all but `memory` and `history`"
    )
    open_clearance: Sensitivity = Field(
        "normal", description="clearance of callers without a key: `public`, `normal`, `sensitive`, `restricted`"
    )
    tenant: str = Field("default", min_length=1, max_length=512, description="tenant of callers without a key")
    environment: str = Field(
        "default", min_length=1, max_length=512, description="environment of callers without a key"
    )
    user: str | None = Field(
        None,
        max_length=512,
        description="user on whose behalf commands and callers without a key act: private documents of others are "
        "hidden",
    )
    teams: tuple[str, ...] | None = Field(None, description="teams of that user: documents of other teams are hidden")

    mcp_hosts: tuple[str, ...] = Field(
        (),
        description="hosts, with their port unless it is the default one, under which clients and proxies address "
        "`/mcp`: others are refused; empty: with keys any, without keys this machine only",
    )

    @field_validator("default_collections", "mcp_hosts", "teams", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return split(value)

    @field_validator("user", "teams")
    @classmethod
    def _names(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        names = (value,) if isinstance(value, str) else value
        if names is not None and not names:  # it was to hide documents
            raise ValueError(ALLOWED_NAMES)
        for name in names or ():
            check_name("a name", name)
        return value

    @field_validator("keys_file", mode="before")
    @classmethod
    def _not_empty(cls, value: object) -> object:
        return not_empty(value)

    @field_validator("keys_file")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        # Links are not resolved: a mounted secret changes when its link points to another file.
        return value and value.expanduser().absolute()
