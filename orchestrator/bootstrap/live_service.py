"""The service over the live generation: when another one becomes live, a new service takes the place of the old one.

A request has the service that was there when it began until it ends, so no response has documents of two generations.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus

from adapters import AdapterError
from orchestrator.bootstrap.first_search import warm_up
from orchestrator.bootstrap.service import open_service
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings

_log = logging.getLogger(__name__)

_RETRY_S = 5.0
"""Seconds until a generation that could not be opened is tried again."""

Use: TypeAlias = Callable[[Service], Callable[[], Awaitable[None]]]
"""Called with a service that is open: it is to be used from now on, instead of the one before. Returns what waits until
nothing uses it any more, which is called when another one has taken its place."""


class LiveService:
    """Opens the service, and replaces it.

    :param group: runs its background tasks.
    """

    def __init__(self, settings: Settings, group: TaskGroup, use: Use) -> None:
        self._settings = settings
        self._group = group
        self._use = use
        self._catalog = Catalog(settings.storage.data_dir)
        self._live = 0
        self._replaced = anyio.Event()

    async def start(self) -> None:
        """Open the first service, and replace it whenever another generation is live, as long as the group runs.

        :raises AdapterError: KeyFileError, SettingsError or OSError, if it cannot be opened.
        """
        await self._group.start(self._serve)
        self._group.start_soon(self._follow)

    async def _follow(self) -> None:
        interval_s = self._settings.writes.refresh_interval_ms / 1_000
        while True:
            await asyncio.sleep(interval_s)
            try:
                if await anyio.to_thread.run_sync(self._is_outdated):
                    await self._group.start(self._serve)
            except Exception as error:
                reason = error.for_operators if isinstance(error, AdapterError) else type(error).__name__
                _log.exception("the live generation cannot be opened, searches use the one before: %s", reason)
                await asyncio.sleep(_RETRY_S)

    def _is_outdated(self) -> bool:
        return self._catalog.read().live != self._live

    async def _serve(self, *, task_status: TaskStatus[None]) -> None:
        """Open a service, put it in the place of the one before, and close it when nothing uses it any more."""
        live = (await anyio.to_thread.run_sync(self._catalog.read)).live
        async with open_service(self._settings) as service:
            await warm_up(service)
            replaced, before = anyio.Event(), self._replaced
            self._live, self._replaced = live, replaced
            ended = self._use(service)
            _log.info("serving the generation %s", service.settings.storage.index_name, extra=_started(service))
            before.set()
            task_status.started()
            async with anyio.create_task_group() as group:
                for task in service.background:
                    group.start_soon(task)
                await replaced.wait()
                group.cancel_scope.cancel()
            await ended()


def _started(service: Service) -> dict[str, object]:
    """What a service was started with, for the log: no credentials."""
    settings = service.settings
    sources = settings.sources
    return {
        "release": version("trivium"),
        "data_dir": str(settings.storage.data_dir),
        "sources": {name: str(sources.address(name) or url) for name, url in sources.urls.items()},
        "cache": urlsplit(settings.cache.url).scheme,
        "embedder": settings.encoding.embedder,
        "keys": "none" if service.keyring is None else str(service.keyring.path),
    }
