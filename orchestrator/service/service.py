"""All use cases of one opened service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from orchestrator.auth.keyring import Keyring
from orchestrator.auth.principal import Principal
from orchestrator.indexing.generations.stores import Stores
from orchestrator.schema.operations import CacheReport
from orchestrator.service.batch import BatchService
from orchestrator.service.documents import DocumentService
from orchestrator.service.feedback import FeedbackService
from orchestrator.service.folders import FolderService
from orchestrator.service.health import HealthService
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.neighbors import NeighborService
from orchestrator.service.replica_fill import ReplicaFill
from orchestrator.service.search import SearchService
from orchestrator.service.shadow import Shadow
from orchestrator.service.state import StateReader
from orchestrator.service.upkeep import Upkeep
from orchestrator.settings.groups import Settings


@dataclass(frozen=True, slots=True)
class Service:
    """The service, opened.

    :param keyring: ``None`` if there are no keys: every request is one of ``anonymous``.
    :param anonymous: the principal of requests without keys, and of the command line.
    :param shadow: searches some queries again under another profile; ``None`` if the settings name none.
    :param upkeep: measures the documents again after writes.
    :param stores: the documents below access control, for building another generation of them.
    :param fill: gives servers the documents that they lack.
    :param background: the background tasks, each of which runs until it is cancelled.
    :param cache_report: counters of all caches.
    :param state: reads the state of this process, for metrics.
    :param count: number of documents of all scopes.
    """

    settings: Settings
    search: SearchService
    shadow: Shadow | None
    feedback: FeedbackService
    batch: BatchService
    documents: DocumentService
    neighbors: NeighborService
    folders: FolderService
    maintenance: MaintenanceService
    stores: Stores
    fill: ReplicaFill
    health: HealthService
    keyring: Keyring | None
    anonymous: Principal
    upkeep: Upkeep
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...]
    cache_report: Callable[[], CacheReport]
    state: StateReader
    count: Callable[[], Awaitable[int]]
