"""Reads the settings from the environment, and from a file that the environment names."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from adapters.model.sources import SOURCES
from adapters.model.spelling import allowed_names, nearest
from orchestrator.settings.allowed import allowed_values, choices
from orchestrator.settings.groups import Settings, setting_fields

PREFIX = "TRIVIUM_"
FILE_VARIABLE = "TRIVIUM_SETTINGS_FILE"
"""Names a file of settings, one ``TRIVIUM_NAME=value`` per line; variables of the environment override it."""

STRICT_VARIABLE = "TRIVIUM_STRICT"
"""Whether a variable with an unknown name is an error."""
_TRUTHS = ("true", "false")
_OF_OTHERS = re.compile(r"TRIVIUM_(TEST_.*|(\w+_)?SERVICE_(HOST|PORT)\w*|(\w+_)?PORT(_\d+_(TCP|UDP)(_\w+)?)?)")
"""Variables of tests, and those that Kubernetes sets for each of its services."""

_log = logging.getLogger(__name__)
_SECRETS = {*(source.name for source in SOURCES), "reranker", "cache", "qdrant_api_key", "reranker_api_key"}
"""Settings whose value is a secret or may contain one: it is not shown in errors."""


class SettingsError(ValueError):
    """A setting has a value that is not allowed; the message names it and what is allowed."""


def load(**overrides: object) -> Settings:
    """The settings.

    A variable of the environment with an unknown name is logged, and an error with ``TRIVIUM_STRICT``.

    :param overrides: values by name, lower-case and without prefix; they override the environment, which overrides the
        settings file.
    :raises SettingsError: if a name is unknown, a value is not allowed, or the file cannot be read.
    """
    path = os.environ.get(FILE_VARIABLE)
    from_file = read_settings_file(Path(path), FILE_VARIABLE) if path else {}
    _check_names(os.environ)
    own = {**_current(os.environ), **overrides}
    return _validated({**from_file, **own}, f"{path}: ", from_file.keys() - own.keys())


def _check_names(variables: Mapping[str, str]) -> None:
    known = [f"{PREFIX}{name.upper()}" for name in setting_fields()]
    unknown = sorted(
        name
        for name in variables
        if name.upper().startswith(PREFIX)
        and name.upper() not in {*known, FILE_VARIABLE, STRICT_VARIABLE}
        and not _OF_OTHERS.fullmatch(name)
    )
    is_strict = variables.get(STRICT_VARIABLE, "false").lower()
    if is_strict not in _TRUTHS:
        raise SettingsError(f"{STRICT_VARIABLE} is {is_strict[:80]!r}, {allowed_names(is_strict, _TRUTHS)}")
    for name in unknown:
        near = nearest(name.upper(), known)
        message = f"{name[:80]} is no setting{f'; the nearest is {near}' if near else ''}"
        if is_strict == "true":
            raise SettingsError(message)
        _warn(message)


@lru_cache
def _warn(message: str) -> None:
    """Log a warning, once in a process."""
    _log.warning("%s: it is ignored (an error with %s=true)", message, STRICT_VARIABLE)


def _validated(values: Mapping[str, object], file: str, from_file: Collection[str]) -> Settings:
    fields = setting_fields()
    for name in values.keys() - fields.keys():
        raise SettingsError(f"there is no setting {name!r}{_hint(name, fields)}")
    try:
        return Settings.of(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        # An address may contain a password, which cannot be removed if the address cannot be parsed.
        shown = "not allowed" if name in _SECRETS else repr(first["input"])
        where = file if name in from_file else ""
        raise SettingsError(f"{where}{PREFIX}{name.upper()} is {shown}{_reason(first, fields[name][2])}") from None


def _reason(error: ErrorDetails, field: FieldInfo) -> str:
    """What is allowed instead of a value, and the nearest of it."""
    if error["type"] == "value_error":  # of a check of ours
        return f": {error['ctx']['error']}"
    if error["type"] == "string_pattern_mismatch":
        return f", allowed are texts of the form {error['ctx']['pattern']}"
    near = nearest(str(error["input"]), choices(field))
    allowed = allowed_values(field).replace("`", "")
    return f", allowed are {allowed}{f'; the nearest is {near}' if near else ''}"


def _why(error: OSError | UnicodeDecodeError) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)


def read_settings_file(path: Path, named_by: str) -> dict[str, object]:
    """The settings in a file, by name, not validated yet: for :func:`load`.

    :param named_by: the variable or option that names the file, for errors.
    :raises SettingsError: if the file cannot be read, or has a line that is no setting.
    """
    try:
        with path.open(encoding="utf-8") as file:
            bindings = list(parse_stream(file))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{named_by} is {str(path)!r}, which cannot be read: {_why(error)}") from error
    for binding in bindings:
        if binding.error or (binding.key is not None and binding.value is None):
            raise SettingsError(f"{path}, line {binding.original.line}: allowed are lines of the form NAME=value")
    names = Counter(binding.key.upper() for binding in bindings if binding.key)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise SettingsError(f"{path}: {repeated[0][:80]!r} is set twice")
    lines = {name: value or "" for name, value in dotenv_values(path).items()}
    for name in lines:
        if _name(name) not in setting_fields():
            # A line without a name is a value, and may be a password.
            shown = "with one of the names in it"
            if name.isidentifier():
                known = [f"{PREFIX}{each.upper()}" for each in setting_fields()]
                shown = f"{name[:80]!r}{_hint(name.upper(), known)}"
            raise SettingsError(f"{path}: there is no setting {shown}")
    return _current(lines)


def _hint(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"; the nearest is {near!r}" if near else ""


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


def not_default(settings: Settings) -> dict[str, str]:
    """The settings that are not the defaults, as variables of the environment, without the values of secrets."""
    defaults, own = environment_of(Settings()), environment_of(settings)
    secrets = {f"{PREFIX}{name.upper()}" for name in _SECRETS - {source.name for source in SOURCES}}
    changed = {name: value for name, value in own.items() if value != defaults.get(name)}
    for source in SOURCES:
        if (name := f"{PREFIX}{source.name.upper()}") in changed:
            changed[name] = str(settings.sources.address(source.name) or changed[name])
    return {name: "…" if name in secrets else value for name, value in changed.items()}


def written(value: object) -> str:
    """The value of a setting as text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return ",".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
