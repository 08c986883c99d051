"""The learned fusion strategy that the settings name."""

from __future__ import annotations

from pathlib import Path

from fusion.learned import Learned, file_of
from orchestrator.planning.strategies import NAMED, Strategies
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import SettingsError

_MAX_BYTES = 1_048_576


def open_strategies(settings: Settings) -> Strategies:
    """The fusion strategies of a service.

    :raises SettingsError: if the file of a learned one cannot be read.
    """
    named = settings.ranking.fusion or ""
    path = file_of(named)
    if path is None:
        return NAMED
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_BYTES)  # a longer file ends in the middle, and is refused
        return Strategies.with_learned(named, Learned.decode(data))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"TRIVIUM_FUSION: {path} cannot be used: {reason}") from error
