"""Which generation the settings mean, and the settings that each was built with."""

from __future__ import annotations

import logging
from functools import lru_cache

from adapters.model.errors import VersionMismatch
from adapters.ports.embedder_address import MINILM
from orchestrator.indexing.generations.catalog import FIRST, Catalog, Generation
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import PREFIX, written

_log = logging.getLogger(__name__)

_FIXED = ("embedder", "embedding_text", "entity_extractor")
"""The settings that documents are prepared with: a generation keeps those that it was built with."""


def fixed_settings(settings: Settings) -> dict[str, str]:
    """The settings that a generation built now would have, by name."""
    return {name: written(settings.value(name)) for name in _FIXED}


def live_settings(settings: Settings) -> Settings:
    """The settings for the live generation of the data folder: those that it was built with, and its own folder.

    :raises VersionMismatch: with ``TRIVIUM_STRICT_INDEX``, if it was built with others than these.
    """
    catalog = Catalog(settings.storage.data_dir)
    known = catalog.read()
    live = known.get(known.live)
    if catalog.own_name or live is None:
        return settings
    if differences := unused_settings(settings, live):
        message = f"{differences}: `trivium backfill` builds an index with the settings of now, beside this one"
        if settings.storage.strict_index:
            raise VersionMismatch(message)
        _warn(message)
    return settings_of(settings, catalog, live)


def unused_settings(settings: Settings, live: Generation) -> str:
    """Which settings have no effect, because the live generation was built with others; empty if there are none."""
    now = fixed_settings(settings)
    return "; ".join(
        f"{PREFIX}{name.upper()} is {now[name]!r} and the index was built with {value!r}, which is used"
        for name, value in live.settings.items()
        if now.get(name, value) != value
    )


def settings_of(settings: Settings, catalog: Catalog, generation: Generation) -> Settings:
    """The settings for one generation."""
    own = {name: value for name, value in generation.settings.items() if name in _FIXED}
    if own.get("embedder", MINILM) != MINILM:
        own["query_encoder"] = "model"  # no other one fits that embedder
    if generation.version == FIRST:
        return settings.changed(**own)
    return settings.changed(data_dir=catalog.folder_of(generation), index_name=generation.name, **own)


@lru_cache
def _warn(message: str) -> None:
    """Log a warning, once in a process."""
    _log.warning("%s", message)
