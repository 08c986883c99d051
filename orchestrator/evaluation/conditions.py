"""What the figures of an evaluation hold for: the index, its settings, the version, the day."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version

from msgspec import Struct

from adapters import Scope, Sensitivity
from adapters.model.sources import SOURCES
from orchestrator.measurement.graph_trust import TRUST_FILE, GraphTrust
from orchestrator.settings.groups import Settings, setting_fields
from orchestrator.settings.loading import PREFIX, written

_GROUPS = frozenset({"encoding", "requests", "ranking"})
"""The groups of the settings that are shown."""
_OF_AN_EVALUATION = frozenset({"max_limit", "timeout_ms", "default_limit"})
"""Fields of these groups that change no figure: requests of an evaluation have their own values."""


class Conditions(Struct, frozen=True):
    """What the figures hold for.

    :param index: where the documents are.
    :param graph_trust: the factor on the weight of the graph; ``None`` if it is not known.
    :param settings: those that differ from the defaults, by the names of their variables; ``None`` if not known.
    :param date: of the evaluation, in UTC.
    """

    index: str
    documents: int
    graph_trust: float | None
    settings: dict[str, str] | None
    version: str
    date: str


def conditions_of(index: str, documents: int, settings: Settings, scope: Scope, clearance: Sensitivity) -> Conditions:
    """The conditions of an index that is searched with some settings, in a scope at a clearance."""
    trust = GraphTrust(settings.storage.data_dir / TRUST_FILE).weight_factor(scope, clearance)
    return Conditions(index, documents, trust, _changed_settings(settings), version("trivium"), today())


def today() -> str:
    """The date in UTC."""
    return datetime.now(UTC).date().isoformat()


def _changed_settings(settings: Settings) -> dict[str, str]:
    defaults = Settings()
    changed = {
        f"{PREFIX}{name.upper()}": written(settings.value(name))
        for name, (group, field, _) in setting_fields().items()
        if group in _GROUPS and field not in _OF_AN_EVALUATION and settings.value(name) != defaults.value(name)
    }
    addresses = {source.name: settings.sources.address(source.name) for source in SOURCES}
    servers = {f"{PREFIX}{name.upper()}": str(address) for name, address in addresses.items() if address}
    return servers | changed
