"""Reading the settings: from the environment, and from a file that the environment names."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError

from adapters.sources import SOURCES
from orchestrator.settings.groups import Settings, setting_fields

_log = logging.getLogger(__name__)

PREFIX = "TRIVIUM_"
FILE_VARIABLE = "TRIVIUM_SETTINGS_FILE"
"""Names a file of settings, one ``TRIVIUM_NAME=value`` a line; variables of the environment override it."""

_RENAMED = {
    "max_in_flight": "search_concurrency",
    "retry_share": "retry_budget_ratio",
    "breaker_pause_ms": "circuit_reset_ms",
    "cache_stale_s": "cache_stale_while_revalidate_s",
    "depth": "candidates_per_source",
    "follow_ms": "refresh_interval_ms",
    "replay_ms": "replication_retry_ms",
    "journal_max_bytes": "write_log_max_bytes",
    "grace_ms": "shutdown_grace_ms",
    "receive_timeout_ms": "client_timeout_ms",
    "open_clearance": "anonymous_clearance",
    "extractor": "entity_extractor",
    "expander": "query_expansion",
}
"""Old names, accepted with a warning for one release."""

_WEIGHT = "weight_"
"""Prefix of the old names of weights: ``weight_graph=2`` is ``weights`` with ``graph=2``."""

_REMOVED = frozenset(
    {
        "backend_connections", "breaker_failures", "ca_file", "cache_poll_ms", "drain_ms", "hedge_ms",
        "identifier_weight", "max_body_bytes", "max_connections", "max_document_bytes", "max_header_bytes",
        "max_query_chars", "max_waiting", "query_encoder_busy", "query_memo", "ranking_memo", "relationship_weight",
        "rerank_budget_chars", "rerank_chars", "rerank_clearance", "write_timeout_ms",
    }
)  # fmt: skip
"""Settings that became constants or were removed; they are ignored with a warning for one release."""

_SECRETS = {*(source.name for source in SOURCES), "reranker", "cache", "qdrant_api_key", "reranker_api_key"}
"""Settings whose value is a secret or may contain one: it is not shown in errors."""


class SettingsError(ValueError):
    """A setting has a value that is not allowed; the message names it and what is allowed."""


def load(**overrides: object) -> Settings:
    """The settings.

    :param overrides: values by name, lower-case and without prefix; they override the environment, which overrides the
        settings file.
    :raises SettingsError: if a value is not allowed, or the file cannot be read.
    """
    path = os.environ.get(FILE_VARIABLE)
    from_file = read_settings_file(Path(path), FILE_VARIABLE) if path else {}
    return _validated({**from_file, **_current(os.environ), **overrides})


def _validated(values: Mapping[str, object]) -> Settings:
    try:
        return Settings.of(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        # An address may contain a password, and one that cannot be parsed hides it where nothing would look for it.
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
        if not _is_known(name):
            # A line without a name is a value, and may be a password.
            shown = repr(name[:80]) if name.isidentifier() else "with one of the names in it"
            raise SettingsError(f"{path}: there is no setting {shown}")
    return _current(lines)


def _is_known(variable: str) -> bool:
    name = _name(variable)
    known = name in setting_fields() or name in _RENAMED or name in _REMOVED
    return known or (name is not None and name.startswith(_WEIGHT))


def _name(variable: str) -> str | None:
    upper = variable.upper()
    return upper.removeprefix(PREFIX).lower() if upper.startswith(PREFIX) else None


def _current(variables: Mapping[str, str]) -> dict[str, object]:
    """The settings among some variables, by their current names."""
    known = setting_fields()
    by_name = {name: value for variable, value in variables.items() if (name := _name(variable)) is not None}
    current: dict[str, object] = {name: value for name, value in by_name.items() if name in known}
    old_weights: dict[str, str] = {}
    for name, value in sorted(by_name.items()):
        if name in _REMOVED:
            _log.warning("%s%s is no setting any more and is ignored", PREFIX, name.upper())
        elif name.startswith(_WEIGHT):
            _log.warning("%s%s is now %sWEIGHTS", PREFIX, name.upper(), PREFIX)
            old_weights[name.removeprefix(_WEIGHT)] = value
        elif (new := _RENAMED.get(name)) and new not in current:
            _log.warning("%s%s is now %s%s", PREFIX, name.upper(), PREFIX, new.upper())
            current[new] = value
    if old_weights and "weights" not in current:
        current["weights"] = old_weights
    return current


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
