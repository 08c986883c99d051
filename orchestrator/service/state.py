"""The state of a process, and how many writes it lacks, for metrics."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import time

from adapters import AdapterError
from adapters.embedded import EmbeddedSources
from adapters.ports.server import ServerSource
from adapters.storage import files
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.indexing.log.write_log import store_name
from orchestrator.indexing.replication import Replication
from orchestrator.schema.operations import ReplicaLag
from orchestrator.service.admission import Admission


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state at one moment.

    :param running: searches that have a slot.
    :param waiting: searches that wait for one.
    :param circuits: by source, the state of its circuit breaker.
    :param warming: by source on a server, whether the server is preparing itself for searches.
    :param lags: by replica.
    :param log_bytes: of the write log; 0 without one.
    :param log_max_bytes: 0 without a log.
    :param accepts_writes: whether this process may write. Searching processes may share a volume that is read-only.
    :param disk_free_bytes: for new files in the data folder; ``disk_bytes``: of its disk; 0 without the folder.
    :param backfill_idle_s: how long a generation that is being built has made no progress; 0 if none is.
    :param generation_lag_s: how long there has been a newer commit that this process has not opened.
    """

    running: int
    waiting: int
    circuits: Mapping[str, str]
    warming: Mapping[str, bool]
    lags: Mapping[str, ReplicaLag]
    log_bytes: int
    log_max_bytes: int
    accepts_writes: bool
    disk_free_bytes: int
    disk_bytes: int
    backfill_idle_s: float
    generation: int
    generation_lag_s: float
    build_id: str


@dataclass(slots=True)
class StateReader:
    """Reads the state.

    :param circuits: by source, the state of its circuit breaker.
    :param servers: the sources on a server, by name.
    :param data_dir: the data folder.
    :param embedded: ``None`` if all sources are on servers.
    :param replication: ``None`` if the embedded index is the only replica.
    :param generation: the newest write that searches see.
    :param now: seconds since the epoch.
    """

    admission: Admission
    circuits: Callable[[], Mapping[str, str]]
    servers: Mapping[str, ServerSource]
    data_dir: Path
    embedded: EmbeddedSources | None
    replication: Replication | None
    generation: Callable[[], int]
    build_id: Callable[[], str]
    now: Callable[[], float] = time
    _lagging_since: float | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def read(self) -> ServiceState:
        """The state. Blocks: it reads files."""
        with self._lock:
            generation_lag_s = self._generation_lag_s()
        log_bytes, log_max_bytes = self.replication.log_size() if self.replication else (0, 0)
        free_bytes, disk_bytes = files.disk_bytes(self.data_dir)
        return ServiceState(
            running=self.admission.running,
            waiting=self.admission.waiting,
            circuits=self.circuits(),
            warming={source: server.is_warming for source, server in self.servers.items()},
            lags=self._lags(),
            log_bytes=log_bytes,
            log_max_bytes=log_max_bytes,
            accepts_writes=os.access(self.data_dir, os.W_OK),
            disk_free_bytes=free_bytes,
            disk_bytes=disk_bytes,
            backfill_idle_s=self._backfill_idle_s(),
            generation=self.generation(),
            generation_lag_s=generation_lag_s,
            build_id=self.build_id(),
        )

    def _backfill_idle_s(self) -> float:
        catalog = Catalog(self.data_dir)
        try:
            building = catalog.read().building
        except AdapterError:
            return 0.0  # writes and searches say that the list of generations is damaged
        if building is None:
            return 0.0
        return max(0.0, self.now() - catalog.last_progress(building))

    def _lags(self) -> Mapping[str, ReplicaLag]:
        if self.replication is None:
            return {}
        lags = {}
        for name in self.replication.replicas:
            appended_at = self.replication.unapplied_at(name)
            age_s = max(0.0, self.now() - appended_at[0]) if appended_at else 0.0
            lags[store_name(name)] = ReplicaLag(len(appended_at), age_s)
        return lags

    def _generation_lag_s(self) -> float:
        if self.embedded is None or not self._is_lagging(self.embedded):
            self._lagging_since = None
            return 0.0
        if self._lagging_since is None:
            self._lagging_since = self.now()
        return self.now() - self._lagging_since

    def _is_lagging(self, embedded: EmbeddedSources) -> bool:
        try:
            return embedded.newest_generation() > embedded.generation()
        except AdapterError:
            return True  # what cannot be read cannot be opened either
