"""The service over the live generation: when another one becomes live, a new service takes the place of the old one.

A request has the service that was there when it began until it ends, so no response has documents of two generations.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from starlette.datastructures import State

from adapters import AdapterError
from adapters.model.errors import reason_of
from orchestrator.auth.keyring import KeyFileError
from orchestrator.bootstrap.first_search import warm_up
from orchestrator.bootstrap.service import open_service
from orchestrator.http.metrics import ServiceMetrics
from orchestrator.http.openapi import openapi_document
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import SettingsError

_log = logging.getLogger(__name__)

TITLE, VERSION = "Trivium", version("trivium")
_RETRY_S = 5.0
"""Seconds until a generation that could not be opened is tried again."""


class LiveService:
    """Opens the service, and replaces it.

    :param state: of the application: its ``service``, ``metrics`` and ``openapi`` are set here. If the first service
        cannot be opened, ``start_failure`` says why.
    """

    def __init__(self, settings: Settings, state: State, group: TaskGroup) -> None:
        self._settings = settings
        self._state = state
        self._group = group
        self._catalog = Catalog(settings.storage.data_dir)
        self._live = 0
        self._replaced = anyio.Event()

    async def start(self) -> None:
        """Open the first service.

        :raises AdapterError: KeyFileError, SettingsError or OSError, if it cannot be opened.
        """
        try:
            await self._group.start(self._serve)
        except (AdapterError, KeyFileError, SettingsError, OSError) as error:
            self._state.start_failure = reason_of(error)
            raise

    async def follow(self) -> None:
        """Replace the service whenever another generation is live, until this is cancelled."""
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
        """Open a service, put it in the place of the one before, and close it when its last request has ended."""
        live = (await anyio.to_thread.run_sync(self._catalog.read)).live
        async with open_service(self._settings) as service:
            await warm_up(service)
            replaced, before = anyio.Event(), self._replaced
            self._live, self._replaced = live, replaced
            metrics: ServiceMetrics | None = getattr(self._state, "metrics", None)
            if metrics is None:
                metrics = self._state.metrics = ServiceMetrics(service)
            else:
                metrics.follow(service)
            _log.info("serving the generation %s", service.settings.storage.index_name, extra=_started(service))
            uses = metrics.uses
            self._state.openapi = _openapi(service)
            self._state.service = service
            before.set()
            task_status.started()
            async with anyio.create_task_group() as group:
                for task in service.background:
                    group.start_soon(task)
                await replaced.wait()
                group.cancel_scope.cancel()
            await uses.ended()


def _started(service: Service) -> dict[str, object]:
    """What a service was started with, for the log: no credentials."""
    settings = service.settings
    sources = settings.sources
    return {
        "release": VERSION,
        "data_dir": str(settings.storage.data_dir),
        "sources": {name: str(sources.address(name) or url) for name, url in sources.urls.items()},
        "cache": urlsplit(settings.cache.url).scheme,
        "embedder": settings.encoding.embedder,
        "keys": "none" if service.keyring is None else str(service.keyring.path),
    }


def _openapi(service: Service) -> bytes:
    """The OpenAPI document, encoded once: a client without a key may request it."""
    sources = [source.name for source in service.search.sources]
    dimension = service.search.retrieval.preparation.encoders.dimension
    max_limit = service.settings.requests.max_limit
    document = openapi_document(TITLE, VERSION, dimension, sources, max_limit, service.keyring is not None)
    return msgspec.json.encode(document)
