"""What is recorded of each request, and the state of the process, for ``GET /metrics``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import version
from threading import Lock

import anyio.to_thread

from cache import Stats
from orchestrator.execution.stage_results import NOT_RERANKED, AllSourcesFailed
from orchestrator.schema.operations import CacheLevel, CacheReport
from orchestrator.service.response_cache import EncodedResponse
from orchestrator.service.service import Service
from orchestrator.service.shadow import Comparison, ShadowOutcome
from orchestrator.telemetry import memory
from orchestrator.telemetry.metrics import CIRCUIT_STATES, Metrics

_log = logging.getLogger(__name__)

_SAMPLE_S = 1.0
"""Seconds between two samples of the gauges. A scrape samples the gauges of its process, too."""
_COUNTERS = {
    "hit": "hits",
    "miss": "misses",
    "stale": "stale",
    "stored": "stored",
    "evicted": "evictions",
    "error": "errors",
    "skipped": "skipped",
}
"""The counters of a cache in a report, by operation."""
_STATE_NAMES = {number: name for name, number in CIRCUIT_STATES.items()}
_REDIS = "cache"
"""The name of the shared cache among the sources that have a circuit breaker."""


class Uses:
    """The requests that use a service."""

    def __init__(self) -> None:
        self._count = 0
        self._ended = asyncio.Event()

    def begin(self) -> None:
        """A request has begun."""
        self._count += 1
        self._ended.clear()

    def end(self) -> None:
        """A request has ended."""
        self._count -= 1
        if not self._count:
            self._ended.set()

    async def ended(self) -> None:
        """Wait until no request uses the service."""
        if self._count:
            await self._ended.wait()


class ServiceMetrics:
    """The metrics of a service. ``in_flight``: requests that have no complete response yet."""

    def __init__(self, service: Service) -> None:
        self.in_flight = 0
        self._sampling = Lock()
        self._metrics = Metrics()
        self._release = version("trivium")
        self.follow(service)

    def follow(self, service: Service) -> None:
        """Record a service from now on. The requests that begin later are its uses."""
        self.uses = Uses()
        self._service = service
        self._sources = frozenset(source.name for source in service.search.sources)
        if service.shadow:
            service.shadow.observe = self._record_shadow

    def record(
        self, method: str, path: str, status: int, seconds: float, search: EncodedResponse | None, trace_id: str = ""
    ) -> None:
        """Record a request that has a response.

        :param method: of the operation. Methods and paths have few values.
        :param search: the response, if it was a search.
        :param trace_id: of its trace, if that is recorded.
        """
        self._metrics.record_request(method, path, status, seconds, trace_id)
        if search:
            self.record_search(search)

    def record_search(self, search: EncodedResponse) -> None:
        """Record the response to a search."""
        self._metrics.record_search(search.cache)
        if body := search.computed:
            degraded = {each.source for each in body.degraded}
            answered = [source for source in body.route.sources if source not in degraded]
            self._metrics.record_computed(search.timings_ms, answered, degraded & self._sources, degraded)
            outcome = search.timings.log_fields["rerank"] if search.timings else NOT_RERANKED.outcome
            if outcome != NOT_RERANKED.outcome:
                self._metrics.record_reranked(str(outcome))

    def _record_shadow(self, outcome: ShadowOutcome, comparison: Comparison | None) -> None:
        self._metrics.record_shadow(outcome)
        if comparison:
            self._metrics.record_comparison(
                comparison.overlap,
                comparison.rank_correlation,
                comparison.live_ms / 1_000,
                comparison.shadow_ms / 1_000,
            )

    def record_failed_search(self, error: AllSourcesFailed) -> None:
        """Record a search without a response, because every source failed."""
        failed = [each.source for each in error.failures]
        self._metrics.record_computed({}, (), self._sources.intersection(failed), failed)

    async def run(self) -> None:
        """Sample the gauges periodically, until this is cancelled."""
        while True:
            try:
                await anyio.to_thread.run_sync(self._sample)
            except Exception:
                _log.exception("the gauges could not be sampled")
            await asyncio.sleep(_SAMPLE_S)

    async def cache_report(self) -> CacheReport:
        """The counters of all caches, of all processes behind this port."""
        return await anyio.to_thread.run_sync(self._all_caches)

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
        report = self._service.cache_report()
        levels = report.levels
        metrics.set_computations(report.flights, report.joined)
        metrics.set_circuits(state.circuits)
        metrics.set_circuits({_REDIS: level.state for level in levels.values() if level.state})  # noqa: B035  # one has
        metrics.set_warming(state.warming)
        for replica, lag in state.lags.items():
            metrics.set_replica(replica, lag.writes, lag.seconds)
        metrics.set_writes(state.accepts_writes, state.log_bytes, state.log_max_bytes)
        metrics.set_disk(state.disk_free_bytes, state.disk_bytes)
        metrics.set_backfill(state.backfill_idle_s)
        metrics.set_index(state.generation, state.generation_lag_s, self._release, state.build_id)
        feedback = self._service.feedback
        metrics.set_feedback(feedback.recorded, feedback.dropped)
        metrics.set_memory(memory.used_bytes(), memory.limit_bytes())
        for name, level in levels.items():
            totals = {operation: getattr(level, field) for operation, field in _COUNTERS.items()}
            age_s = level.mean_age_s * (level.hits + level.stale)
            metrics.set_cache(name, totals, age_s, level.entries, level.bytes)

    def _all_caches(self) -> CacheReport:
        """The report of this process with the numbers of all processes. Blocks."""
        self._sample()
        values = self._metrics.values()
        levels = {name: _of_all(name, level, values) for name, level in self._service.cache_report().levels.items()}
        flights, joined = (int(values.get((name,), 0)) for name in ("searches_computing", "joined_searches_total"))
        return CacheReport(levels, flights, joined)


def _of_all(name: str, level: CacheLevel, values: Mapping[tuple[str, ...], float]) -> CacheLevel:
    """A cache of one process with the numbers of all of them."""

    def whole(*key: str) -> int:
        return int(values.get(key, 0))

    counts = {field: whole("cache_operations_total", name, operation) for operation, field in _COUNTERS.items()}
    return CacheLevel.of(
        Stats(**counts, age_s=values.get(("cache_hit_age_seconds_total", name), 0.0)),
        None if level.entries is None else whole("cache_entries", name),
        None if level.bytes is None else whole("cache_bytes", name),
        None if level.state is None else _STATE_NAMES[whole("circuit_state", _REDIS)],
    )
