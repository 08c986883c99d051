"""Reads the settings from the environment, and from a file that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError

from adapters.model.sources import SOURCES
from orchestrator.settings.groups import Settings, setting_fields

PREFIX = "TRIVIUM_"
FILE_VARIABLE = "TRIVIUM_SETTINGS_FILE"
"""Names a file of settings, one ``TRIVIUM_NAME=value`` per line; variables of the environment override it."""

_SECRETS = {*(source.name for source in SOURCES), "reranker", "cache", "qdrant_api_key", "reranker_api_key"}
"""Settings whose value is a secret or may contain one: it is not shown in errors."""


class SettingsError(ValueError):
    """A setting has a value that is not allowed; the message names it and what is allowed."""


def load(**overrides: object) -> Settings:
    """The settings.

    :param overrides: values by name, lower-case and without prefix; they override the environment, which overrides the
        settings file.
    :raises SettingsError: if a name is unknown, a value is not allowed, or the file cannot be read.
    """
    path = os.environ.get(FILE_VARIABLE)
    from_file = read_settings_file(Path(path), FILE_VARIABLE) if path else {}
    return _validated({**from_file, **_current(os.environ), **overrides})


def _validated(values: Mapping[str, object]) -> Settings:
    for name in values.keys() - setting_fields().keys():
        raise SettingsError(f"there is no setting {name!r}{_nearest(name, setting_fields())}")
    try:
        return Settings.of(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        # An address may contain a password, which cannot be removed if the address cannot be parsed.
        shown = "not allowed" if name in _SECRETS else repr(first["input"])
        message = f"{first['msg'][0].lower()}{first['msg'][1:]}"
        raise SettingsError(f"{PREFIX}{name.upper()} is {shown}: {message}") from None


def read_settings_file(path: Path, named_by: str) -> dict[str, object]:
    """The settings in a file, by name, not validated yet: for :func:`load`.

    :param named_by: the variable or option that names the file, for errors.
    :raises SettingsError: if the file cannot be read, or has a line that is no setting.
    """
    try:
        path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{named_by} is {str(path)!r}, which cannot be read: {error}") from error
    lines = {name: value or "" for name, value in dotenv_values(path).items()}
    for name in lines:
        if _name(name) not in setting_fields():
            # A line without a name is a value, and may be a password.
            shown = "with one of the names in it"
            if name.isidentifier():
                known = [f"{PREFIX}{each.upper()}" for each in setting_fields()]
                shown = f"{name[:80]!r}{_nearest(name.upper(), known)}"
            raise SettingsError(f"{path}: there is no setting {shown}")
    return _current(lines)


def _nearest(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(name, list(known), 1)
    return f", did you mean {found[0]!r}?" if found else ""


def _name(variable: str) -> str | None:
    upper = variable.upper()
    return upper.removeprefix(PREFIX).lower() if upper.startswith(PREFIX) else None


def _current(variables: Mapping[str, str]) -> dict[str, object]:
    """The settings among some variables."""
    known = setting_fields()
    return {name: value for variable, value in variables.items() if (name := _name(variable)) in known and name}


def environment_of(settings: Settings) -> dict[str, str]:
    """The settings as variables of the environment, for another process. Those that are not set are left out."""
    values = {name: settings.value(name) for name in setting_fields()}
    return {f"{PREFIX}{name.upper()}": written(value) for name, value in values.items() if value is not None}


def written(value: object) -> str:
    """The value of a setting as text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return ",".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
