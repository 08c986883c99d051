"""What is recorded of each request, and the state of the process, for ``GET /metrics``."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from threading import Lock

import anyio.to_thread

from orchestrator.service.response_cache import EncodedResponse
from orchestrator.service.service import Service
from orchestrator.telemetry import memory
from orchestrator.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)

_SAMPLE_S = 1.0
"""Seconds between two samples of the gauges. A scrape samples the gauges of its process, too."""
_REDIS = "cache"
"""The name of the shared cache among the sources that have a circuit breaker."""


class ServiceMetrics:
    """The metrics of a service. ``in_flight``: requests that have no complete response yet."""

    def __init__(self, service: Service) -> None:
        self.in_flight = 0
        self._sampling = Lock()
        self._metrics = Metrics()
        self._service = service
        self._sources = frozenset(source.name for source in service.search.sources)
        self._release = version("trivium")

    def record(
        self, method: str, path: str, status: int, seconds: float, search: EncodedResponse | None, trace_id: str = ""
    ) -> None:
        """Record a request that has a response.

        :param method: of the operation. Methods and paths have few values.
        :param search: the response, if it was a search.
        :param trace_id: of its trace, if that is recorded.
        """
        self._metrics.record_request(method, path, status, seconds, trace_id)
        if search is None:
            return
        self._metrics.record_search(search.cache)
        if body := search.computed:
            degraded = {each.source for each in body.degraded}
            answered = [source for source in body.route.sources if source not in degraded]
            self._metrics.record_computed(search.timings_ms, answered, degraded & self._sources, degraded)

    async def run(self) -> None:
        """Sample the gauges periodically, until this is cancelled."""
        while True:
            try:
                await anyio.to_thread.run_sync(self._sample)
            except Exception:
                _log.exception("the gauges could not be sampled")
            await asyncio.sleep(_SAMPLE_S)

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """See :meth:`orchestrator.telemetry.metrics.Metrics.exposition`."""
        await anyio.to_thread.run_sync(self._sample)
        return await anyio.to_thread.run_sync(self._metrics.exposition, accept)

    def _sample(self) -> None:
        """Set all gauges. Blocks. One thread at a time: counters are compared with their last values."""
        with self._sampling:
            self._set_gauges()

    def _set_gauges(self) -> None:
        metrics, state = self._metrics, self._service.state.read()
        metrics.set_load(self.in_flight, state.running, state.waiting)
        levels = self._service.cache_report().levels
        metrics.set_circuits(state.circuits)
        metrics.set_circuits({_REDIS: level.state for level in levels.values() if level.state})  # noqa: B035  # one has
        metrics.set_warming(state.warming)
        for replica, lag in state.lags.items():
            metrics.set_replica(replica, lag.writes, lag.seconds)
        metrics.set_writes(state.accepts_writes, state.log_bytes, state.log_max_bytes)
        metrics.set_index(state.generation, state.generation_lag_s, self._release, state.build_id)
        metrics.set_memory(memory.used_bytes(), memory.limit_bytes())
        for name, level in levels.items():
            totals = {
                "hit": level.hits,
                "miss": level.misses,
                "stale": level.stale,
                "stored": level.stored,
                "evicted": level.evictions,
                "error": level.errors,
                "skipped": level.skipped,
            }
            metrics.set_cache(name, totals, level.entries, level.bytes)
