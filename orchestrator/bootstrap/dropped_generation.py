"""Deletes a generation that is not live."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import time

import anyio.to_thread
from msgspec.structs import replace

from adapters import Unavailable
from adapters.storage import files
from orchestrator.bootstrap.embedded import INDEX_FOLDER
from orchestrator.bootstrap.encoders import STATIC_ENCODER_FILE
from orchestrator.bootstrap.other_generations import open_other
from orchestrator.bootstrap.replicas import LOG_FOLDER
from orchestrator.indexing.generations.catalog import BUILDING, FIRST, Catalog, Generation, Generations
from orchestrator.indexing.generations.changes import ChangeRecord
from orchestrator.indexing.metadata_keys import KEYS_FOLDER
from orchestrator.measurement.calibration import CALIBRATION_FILE
from orchestrator.measurement.graph_trust import TRUST_FILE
from orchestrator.planning.errors import BadRequest
from orchestrator.settings.groups import Settings

_PINNED_S = 60.0
"""Seconds after a switch in which searches of other processes may still use the generation that was live before."""
_OF_FIRST = (INDEX_FOLDER, LOG_FOLDER, KEYS_FOLDER, STATIC_ENCODER_FILE, TRUST_FILE, CALIBRATION_FILE)
"""What belongs to the first generation in the data folder."""


def paths_of(catalog: Catalog, generation: Generation) -> list[Path]:
    """The files and folders of a generation."""
    folder = catalog.folder_of(generation)
    return [folder / name for name in _OF_FIRST] if generation.version == FIRST else [folder]


async def drop_generation(settings: Settings, generation: Generation) -> None:
    """Delete a generation, with its indexes on servers. If it is interrupted, the next call goes on.

    :raises BadRequest: if it is live.
    :raises Unavailable: if it was live a moment ago, a process builds it, or a server does not answer.
    """
    catalog = Catalog(settings.storage.data_dir)
    if generation.left_at is not None and (waiting := generation.left_at + _PINNED_S - time()) > 0:
        raise Unavailable(f"{generation.name} was live a moment ago, and searches may use it: wait {waiting:.0f} s")

    def marked(known: Generations) -> Generations:
        if known.live == generation.version:
            raise BadRequest(f"{generation.name} is live: it cannot be dropped")
        if (building := known.building) and building.origin_version == generation.version and not building.origin:
            raise BadRequest(f"{building.name} is being built from {generation.name}: drop that one first")
        return known.with_(replace(known.require(generation.version), state="dropping"))

    _require_idle(catalog, generation)
    await anyio.to_thread.run_sync(catalog.update, marked)
    if any(map(settings.sources.address, settings.sources.urls)):
        async with open_other(settings, generation) as service:
            for server in service.health.servers.values():
                await server.drop()
    await anyio.to_thread.run_sync(_remove_files, catalog, generation)


def _require_idle(catalog: Catalog, generation: Generation) -> None:
    for lock in (catalog.folder_of(generation) / BUILDING).glob("*.lock"):
        with files.exclusive_now(lock) as is_free:
            if not is_free:
                raise Unavailable(f"a process builds {generation.name}: stop it first")


def _remove_files(catalog: Catalog, generation: Generation) -> None:
    for path in paths_of(catalog, generation):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        files.sync(path.parent)
    with catalog.without_writes():
        known = catalog.update(lambda known: known.without(generation.version))
        if not known.others:
            ChangeRecord(catalog.folder).clear()
