"""Metrics in the formats of Prometheus and OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.telemetry.registry import Registry

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of durations. 0.15 is the objective of a search."""
STAGE_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.5, 1.0, 5.0)
"""Upper bounds of the durations of stages."""
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Upper bounds of shares."""
CIRCUIT_STATES = {"closed": 0, "half-open": 1, "open": 2}


class Metrics(Registry):
    """The metrics of this process. Requests are recorded on the event loop; gauges may be set in another thread."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = self._histogram(
            "request_duration_seconds",
            "Time from the headers of a request to the last byte of its response, by method, path and status.",
            ("method", "path", "status"),
            SECONDS,
        )
        self._stages = self._histogram(
            "search_stage_duration_seconds",
            "Time of each stage of a search that was not cached; sources are stages.",
            ("stage",),
            STAGE_SECONDS,
        )
        self._searches = self._counter(
            "searches", "Searches that have a response, by cache: miss, l1, l2 or stale.", ("cache",)
        )
        self._degraded = self._counter(
            "degraded_searches", "Searches that were computed and whose response is degraded.", ()
        )
        self._sources = self._counter(
            "source_searches", "Searches of a source, by outcome: answered or failed.", ("source", "outcome")
        )
        self._degradations = self._counter(
            "degradations", "Reports in `degraded`, by what failed: a source or a stage.", ("source",)
        )
        self._reranked = self._counter(
            "reranked_searches", "Searches for the reranker, by outcome: used, failed, empty.", ("outcome",)
        )
        self._shadows = self._counter(
            "shadow_searches",
            "Requests chosen for a search under another profile, by outcome: compared, failed, skipped.",
            ("outcome",),
        )
        self._overlaps = self._histogram(
            "shadow_overlap", "Share of the hits that a response and its shadow search both have.", (), SHARES
        )
        self._orders = self._histogram(
            "shadow_same_order",
            "Share of the pairs of these hits that both have in the same order: (1 + Kendall's tau) / 2.",
            (),
            SHARES,
        )
        self._compared = self._histogram(
            "shadow_comparison_seconds",
            "Time of the searches that were compared, without waiting for a slot: live or shadow.",
            ("search",),
            SECONDS,
        )
        self._recorded = self._counter(
            "feedback_responses", "Responses for feedback, by outcome: recorded or dropped.", ("outcome",)
        )
        self._cache = self._counter(
            "cache_operations",
            "Operations of a cache: hit, stale, miss, stored, evicted, error, skipped.",
            ("cache", "operation"),
        )
        self._cache_entries = self._gauge("cache_entries", "Entries of a cache.", ("cache",))
        self._cache_bytes = self._gauge("cache_bytes", "Bytes of the entries of the L1 cache.", ("cache",))
        self._cache_age = self._counter(
            "cache_hit_age_seconds", "Sum of the ages of the entries that a cache returned.", ("cache",)
        )
        self._computing = self._gauge(
            "searches_computing", "Searches that are computed, each for one request or several."
        )
        self._joined = self._counter(
            "joined_searches", "Searches that waited for what another request had begun to compute.", ()
        )
        self._in_flight = self._gauge("requests_in_flight", "HTTP requests that have no complete response yet.")
        self._running = self._gauge("searches_running", "Searches that have a slot.")
        self._waiting = self._gauge("searches_waiting", "Searches that wait for a slot.")
        self._circuits = self._gauge(
            "circuit_state",
            "Circuit breaker of a source, or of the shared cache (`cache`): 0 closed, 1 half-open, 2 open.",
            ("source",),
            "livemax",
        )
        self._warming = self._gauge(
            "source_warming", "1 while the server of a source prepares itself for searches.", ("source",), "livemax"
        )
        self._lag = self._gauge(
            "write_log_lag_writes", "Writes that a replica has not applied.", ("replica",), "livemax"
        )
        self._lag_seconds = self._gauge(
            "write_log_lag_seconds", "Age of the oldest write that a replica has not applied.", ("replica",), "livemax"
        )
        self._accepts_writes = self._gauge(
            "accepts_writes", "1 if the process may write, 0 if its data folder is read-only.", (), "livemax"
        )
        self._log_bytes = self._gauge("write_log_bytes", "Size of the write log.", (), "livemax")
        self._log_max_bytes = self._gauge(
            "write_log_max_bytes", "Size from which on writes are refused; 0 without a write log.", (), "livemax"
        )
        self._disk_free = self._gauge("disk_free_bytes", "Bytes for new files in the data folder.", (), "livemin")
        self._disk = self._gauge("disk_bytes", "Size of the disk with the data folder.", (), "livemax")
        self._backfill_idle = self._gauge(
            "backfill_idle_seconds",
            "Time since a generation that is being built has made progress; 0 if none is being built.",
            (),
            "livemax",
        )
        self._generation = self._gauge("generation", "The newest write that searches see.", (), "livemax")
        self._generation_lag = self._gauge(
            "generation_lag_seconds",
            "Time since there is a newer state of the embedded index that this process has not opened.",
            (),
            "livemax",
        )
        self._memory = self._gauge(
            "memory_bytes", "Memory of all processes that serve, without mapped files, which the kernel can drop."
        )
        self._limit = self._gauge(
            "memory_limit_bytes", "Memory limit of the container; 0 if there is none.", (), "livemax"
        )
        self._build = self._gauge(
            "build_info", "1, with the release and what the index was built with.", ("version", "build_id"), "livemax"
        )

    def record_request(self, method: str, path: str, status: int, seconds: float, trace_id: str = "") -> None:
        """Record a request that has a response.

        :param method: of the operation.
        :param path: of the operation, without ids.
        :param trace_id: of its trace, if it was recorded; shown as an exemplar by a service of one process.
        """
        child = self._child(self._requests, method, path, str(status))
        child.observe(seconds, {"trace_id": trace_id} if trace_id else None)

    def record_search(self, cache: str) -> None:
        """Record a search that has a response."""
        self._child(self._searches, cache).inc()

    def record_computed(
        self, stages_ms: Mapping[str, float], answered: Iterable[str], failed: Iterable[str], degraded: Iterable[str]
    ) -> None:
        """Record a search that was computed.

        :param answered: sources.
        :param failed: sources.
        :param degraded: names in the response's ``degraded``.
        """
        for stage, ms in stages_ms.items():
            self._child(self._stages, stage).observe(ms / 1_000)
        for source in answered:
            self._child(self._sources, source, "answered").inc()
        for source in failed:
            self._child(self._sources, source, "failed").inc()
        names = list(degraded)
        for name in names:
            self._child(self._degradations, name).inc()
        if names:
            self._degraded.inc()

    def record_reranked(self, outcome: str) -> None:
        """Record what became of reranking in a search that was computed."""
        self._child(self._reranked, outcome).inc()

    def record_shadow(self, outcome: str) -> None:
        """Record what became of a request that was chosen for a shadow search."""
        self._child(self._shadows, outcome).inc()

    def record_comparison(
        self, overlap: float, rank_correlation: float | None, live_seconds: float, shadow_seconds: float
    ) -> None:
        """Record a shadow search that was compared.

        :param overlap: in [0, 1].
        :param rank_correlation: in [-1, 1]; ``None`` if there is none.
        """
        self._overlaps.observe(overlap)
        if rank_correlation is not None:
            self._orders.observe((1 + rank_correlation) / 2)  # a histogram of negative values has no sum
        self._child(self._compared, "live").observe(live_seconds)
        self._child(self._compared, "shadow").observe(shadow_seconds)

    def set_load(self, in_flight: int, running: int, waiting: int) -> None:
        """Set the number of requests at this moment."""
        self._in_flight.set(in_flight)
        self._running.set(running)
        self._waiting.set(waiting)

    def set_circuits(self, states: Mapping[str, str]) -> None:
        """Set the circuit state of each source, a key of :data:`CIRCUIT_STATES`."""
        for source, state in states.items():
            self._child(self._circuits, source).set(CIRCUIT_STATES[state])

    def set_warming(self, warming: Mapping[str, bool]) -> None:
        """Set for each source on a server whether it is preparing itself for searches."""
        for source, is_warming in warming.items():
            self._child(self._warming, source).set(is_warming)

    def set_replica(self, replica: str, writes: int, seconds: float) -> None:
        """Set the lag of a replica."""
        self._child(self._lag, replica).set(writes)
        self._child(self._lag_seconds, replica).set(seconds)

    def set_writes(self, accepts_writes: bool, log_bytes: int, log_max_bytes: int) -> None:
        """Set whether writes are accepted, and the size of the write log."""
        self._accepts_writes.set(accepts_writes)
        self._log_bytes.set(log_bytes)
        self._log_max_bytes.set(log_max_bytes)

    def set_disk(self, free_bytes: int, total_bytes: int) -> None:
        """Set the state of the disk with the data folder."""
        self._disk_free.set(free_bytes)
        self._disk.set(total_bytes)

    def set_backfill(self, idle_seconds: float) -> None:
        """Set the state of the generation that is being built."""
        self._backfill_idle.set(idle_seconds)

    def set_index(self, generation: int, lag_seconds: float, version: str, build_id: str) -> None:
        """Set the state of the index that is searched."""
        self._generation.set(generation)
        self._generation_lag.set(lag_seconds)
        self._child(self._build, version, build_id).set(1)

    def set_memory(self, used_bytes: int, limit_bytes: int) -> None:
        """Set the memory of this process, and the limit of the container."""
        self._memory.set(used_bytes)
        self._limit.set(limit_bytes)

    def set_computations(self, running: int, joined: int) -> None:
        """Set the number of computations that are running, and that of the requests that joined one since the start."""
        self._computing.set(running)
        self._grow(self._joined, joined)

    def set_feedback(self, recorded: int, dropped: int) -> None:
        """Set the number of responses that were recorded since the start, and that were not."""
        self._grow(self._recorded, recorded, "recorded")
        self._grow(self._recorded, dropped, "dropped")

    def set_cache(
        self, cache: str, totals: Mapping[str, float], age_s: float, entries: int | None, size: int | None
    ) -> None:
        """Set the state of a cache.

        :param totals: since the start of the process, by operation.
        :param age_s: sum of the ages of the entries that were found since then.
        """
        for operation, total in totals.items():
            self._grow(self._cache, total, cache, operation)
        self._grow(self._cache_age, age_s, cache)
        if entries is not None:
            self._child(self._cache_entries, cache).set(entries)
        if size is not None:
            self._child(self._cache_bytes, cache).set(size)
