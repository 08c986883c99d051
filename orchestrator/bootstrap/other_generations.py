"""Opens generations beside the live one, and begins new ones."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from time import time

import anyio.to_thread
from msgspec.structs import replace

from adapters import Unavailable
from orchestrator.bootstrap.assembly import open_generation
from orchestrator.bootstrap.generations import fixed_settings, settings_of
from orchestrator.indexing.generations.catalog import FIRST, Catalog, Generation, Generations
from orchestrator.indexing.generations.changes import ChangeRecord
from orchestrator.planning.errors import BadRequest
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import PREFIX

_COMPARED = {"settings": "settings", "origin": "files", "origin_state": "content of its files", "shards": "shards"}
_MAX_NAME_CHARS, _MAX_ENVIRONMENT_CHARS = 60, 24


@asynccontextmanager
async def open_live(settings: Settings) -> AsyncIterator[Service]:
    """The service over the live generation, whatever the settings would build now."""
    catalog = Catalog(settings.storage.data_dir)
    known = await anyio.to_thread.run_sync(catalog.read)
    live = known.get(known.live)
    own = settings_of(settings, catalog, live) if live else settings
    async with open_generation(own.changed(strict_index=False)) as service:
        yield service


@asynccontextmanager
async def open_other(settings: Settings, generation: Generation) -> AsyncIterator[Service]:
    """The service over another generation."""
    own = settings_of(settings, Catalog(settings.storage.data_dir), generation)
    async with open_generation(own) as service:
        yield service


@asynccontextmanager
async def open_origin(settings: Settings, is_resumed: bool) -> AsyncIterator[Service]:
    """The service over the generation that one is built from: if it was begun before, that which was live then."""
    known = await anyio.to_thread.run_sync(Catalog(settings.storage.data_dir).read)
    current = _current(known, is_resumed)
    if current is None or current.origin_version == known.live:
        opening = open_live(settings)
    else:
        opening = open_other(settings, known.require(current.origin_version))
    async with opening as service:
        yield service


@asynccontextmanager
async def open_empty(settings: Settings) -> AsyncIterator[Service]:
    """A service without documents, as a new generation would begin. Nothing is created on servers."""
    with TemporaryDirectory() as folder:
        async with open_generation(settings.changed(data_dir=folder), prepare=False) as service:
            yield service


def begin(settings: Settings, wanted: Generation, is_resumed: bool, is_shard: bool, origin: Service) -> Generation:
    """The generation to build with these settings: a new one, or that which is being built already. Blocks.

    :param wanted: without what is determined here: name, version, settings, and the origin's version.
    :param is_resumed: whether one that is being built is meant, or that was built last and has not been live yet.
    :param is_shard: whether this is one of several processes.
    :param origin: what :func:`open_origin` has opened.
    :raises BadRequest: if one is being built that is not meant, or that is built from something else.
    :raises Unavailable: if another generation has become live since the origin was opened.
    """
    catalog = Catalog(settings.storage.data_dir)
    fixed = fixed_settings(settings)
    origin_version = Catalog(origin.settings.storage.data_dir).own_version()

    def added(known: Generations) -> Generations:
        if _current(known, is_resumed):
            return known
        if known.get(known.live) is None:
            # If it was built with other settings, these are not known: it is used with those that there are.
            own = {} if origin.search.mismatches() else fixed
            known = known.with_(Generation(settings.storage.index_name, FIRST, own, time()))
        version = known.last_version + 1
        end = ChangeRecord(catalog.folder).end()
        new = replace(wanted, name=_name(settings, version), version=version, settings=fixed, changes_end=end)
        return known.with_(replace(new, origin_version=known.live))

    before = catalog.read()
    with catalog.without_writes():  # so that each write is either before the generation, or recorded
        known = catalog.update(added)
    if (current := _current(known, is_resumed)) is None:
        raise BadRequest("the generation has just been dropped by another process")
    if current.origin_version != origin_version:
        raise Unavailable("another generation has just become live: try again")
    _require_same(current, replace(wanted, settings=fixed), is_resumed, is_shard, is_begun=current in before.known)
    return current


def _current(known: Generations, is_resumed: bool) -> Generation | None:
    newest = known.known[-1] if known.known else None
    if is_resumed and newest and newest.version > known.live and newest.state == "complete" and newest.left_at is None:
        return newest
    return known.building


def _require_same(current: Generation, wanted: Generation, is_resumed: bool, is_shard: bool, is_begun: bool) -> None:
    if is_begun and not (is_resumed or is_shard):
        raise BadRequest(
            f"{current.name} is being built: --resume goes on with it, `trivium generations drop {current.name}` "
            "gives it up"
        )
    is_named = bool(wanted.origin) or not is_resumed
    compared = {"settings": True, "origin": is_named, "origin_state": is_named, "shards": is_shard}
    for what in (name for name, is_compared in compared.items() if is_compared):
        one, other = getattr(current, what), getattr(wanted, what)
        if one != other:
            raise BadRequest(
                f"{current.name} was begun with other {_COMPARED[what]}: {_shown(one)}; asked for: {_shown(other)}"
            )


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{PREFIX}{name.upper()}={each}" for name, each in value.items())
    return ", ".join(map(str, value)) or "the stored documents" if isinstance(value, tuple) else str(value)


def _name(settings: Settings, version: int) -> str:
    """``{name}_{environment}_{scope}_{version}``. The scope is ``all``: an index has the documents of all tenants."""
    environment = re.sub(r"[^a-z0-9-]+", "-", settings.access.environment.lower())[:_MAX_ENVIRONMENT_CHARS].strip("-")
    return f"{settings.storage.index_name[:_MAX_NAME_CHARS]}_{environment or 'other'}_all_{version}"
