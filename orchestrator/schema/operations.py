"""The paths for operators: health and cache."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cache import Stats


class CacheLevel(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Counters of one cache since the service started; ages are in seconds."""

    hits: int
    misses: int
    entries: int | None = None
    bytes: int | None = None
    stale: int = 0
    stored: int = 0
    evictions: int = 0
    errors: int = 0
    skipped: int = 0
    mean_age_s: float = 0.0
    hit_rate: float = 0.0
    state: str | None = None

    @classmethod
    def of(
        cls, stats: Stats, entries: int | None = None, size: int | None = None, state: str | None = None
    ) -> CacheLevel:
        """The counters in ``stats``, and the state of the cache at this moment."""
        return cls(
            hits=stats.hits,
            misses=stats.misses,
            stale=stats.stale,
            stored=stats.stored,
            evictions=stats.evictions,
            errors=stats.errors,
            skipped=stats.skipped,
            mean_age_s=stats.mean_age_s,
            hit_rate=stats.hit_rate,
            entries=entries,
            bytes=size,
            state=state,
        )


class CacheReport(Struct, frozen=True):
    """The response to ``GET /v1/cache``, of all processes behind this port together: ``l1`` in memory, ``l2`` in Redis,
    and the memos of single sources.

    ``flights``: computations that are running. ``joined``: requests that waited for a computation that another request
    had started.
    """

    levels: Mapping[str, CacheLevel]
    flights: int
    joined: int


class Readiness(Struct, frozen=True, omit_defaults=True):
    """The response to ``GET /readyz``: ready if at least one source can be searched and the process is not draining.

    With ``?verbose``, ``upkeep`` is the state of measuring the documents again: ``idle``, ``running``, ``off``, or that
    it failed.
    """

    ready: bool
    sources: Mapping[str, str]
    draining: bool = False
    upkeep: str = ""


class ReplicaLag(Struct, frozen=True):
    """A store of the documents: the writes that it lacks, and the age of the oldest of them in seconds."""

    writes: int
    seconds: float


class Status(Struct, frozen=True):
    """The response to ``GET /v1/status``: the state of the process that responds.

    :param release: of Trivium.
    :param index_version: what the index was built with.
    :param generation: of the newest write that searches see.
    :param documents: of all tenants.
    :param sources: the state of each: ``ok``, ``warming``, or the problem.
    :param circuits: by source on a server, ``closed`` while it is searched, ``open`` while it is left alone.
    :param replicas: each store of the documents. Empty if the embedded index is the only one.
    :param mismatches: how an index differs from the settings, by source.
    :param upkeep: as in :class:`Readiness`.
    :param accepts_writes: whether the data folder can be written to.
    :param running: searches that are computed now; ``waiting``: those that wait.
    :param log_bytes: of the log of writes that are not applied everywhere.
    :param disk_free_bytes: for new files in the data folder.
    """

    release: str
    index_version: str
    generation: int
    documents: int
    sources: Mapping[str, str]
    circuits: Mapping[str, str]
    replicas: Mapping[str, ReplicaLag]
    mismatches: Mapping[str, str]
    upkeep: str
    accepts_writes: bool
    running: int
    waiting: int
    log_bytes: int
    disk_free_bytes: int


class Liveness(Struct, frozen=True):
    """The response to ``GET /livez``."""

    live: bool
