"""The caches, and the counters that invalidate them."""

from __future__ import annotations

import hashlib
import logging
import platform
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from time import monotonic, time
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from adapters import Unavailable
from adapters.ports.optional_packages import extra
from adapters.storage import checked_file, files
from cache import CachePolicy, CircuitBreaker, InvalidationCounters, MemoryLevel, SharedLevel, TieredCache
from cache.circuit_breaker import State
from orchestrator.auth.loopback import is_loopback
from orchestrator.indexing.data_version import INSTALLATION_FILE, DataVersions, VersionSource
from orchestrator.retrieval.memo import Memo
from orchestrator.schema.operations import CacheLevel, CacheReport
from orchestrator.schema.search import ResponseBody
from orchestrator.service.response_cache import ResponseCache
from orchestrator.settings.backends import MEMORY
from orchestrator.settings.groups import Settings

_log = logging.getLogger(__name__)

_DEGRADED_TTL_S = 1.0
"""Seconds for which a degraded response is cached."""
_POLL_S = 1.0
"""Seconds between two reads of the counters, in case a message was lost."""
_WRITE_TIMEOUT_FACTOR = 10
"""Factor on the time limit for incrementing counters: no request waits for that."""


class Caches:
    """The caches that the settings name.

    :param local: what this process searches in its own files.
    :param all_on_servers: whether every source is on a server.
    :param stack: closes what is opened here.
    """

    def __init__(
        self, settings: Settings, local: Sequence[VersionSource], all_on_servers: bool, stack: AsyncExitStack
    ) -> None:
        self.counters: InvalidationCounters | None = None
        self._ttl_s = settings.cache.ttl_s
        self._memos: dict[str, Memo[Any]] = {}
        self._breakers: list[CircuitBreaker] = []
        shared: SharedLevel | None = None
        if settings.cache.url != MEMORY:
            shared, self.counters, self._breakers = _open_redis(settings, stack)
        versioned = () if all_on_servers and self.counters else local
        installation = _installation_id(settings.storage.data_dir) if versioned else ""
        self.data_versions = DataVersions(versioned, installation, self.counters)
        policy = CachePolicy(
            settings.cache.ttl_s, settings.cache.stale_while_revalidate_s, min(_DEGRADED_TTL_S, settings.cache.ttl_s)
        )
        memory = MemoryLevel(settings.cache.max_bytes)
        self.responses = ResponseCache(TieredCache(memory, shared, policy, time, random.random))

    def memo(self, name: str) -> Memo[Any]:
        """The memo with this name, created at the first call."""
        return self._memos.setdefault(name, Memo(self._ttl_s, monotonic, commit=self.data_versions.commit))

    def report(self) -> CacheReport:
        """The counters of every cache."""
        cache = self.responses.levels
        levels = {"l1": CacheLevel.of(cache.l1.stats, len(cache.l1), cache.l1.size_bytes)}
        if cache.l2:
            levels["l2"] = CacheLevel.of(cache.l2.stats, state=self._redis_state())
        for name, memo in self._memos.items():
            levels[name] = CacheLevel(hits=memo.hits, misses=memo.misses, entries=len(memo))
        return CacheReport(levels, len(cache.single_flight), cache.single_flight.coalesced)

    def _redis_state(self) -> State:
        """The worse state of the two circuit breakers, for responses and for counters."""
        states = {breaker.state for breaker in self._breakers}
        return "open" if "open" in states else "half-open" if "half-open" in states else "closed"


def is_open(url: str) -> bool:
    """Whether a cache is on another host, and has no password."""
    parts = urlsplit(url)
    return url != MEMORY and not parts.password and not is_loopback(parts.hostname or "")


def _open_redis(
    settings: Settings, stack: AsyncExitStack
) -> tuple[SharedLevel, InvalidationCounters, list[CircuitBreaker]]:
    with extra("redis"):
        from cache import counters, redis  # noqa: PLC0415
    timeout_s = settings.cache.timeout_ms / 1_000
    # Two clients, so that reading responses does not block the connections of the counters.
    try:
        clients = [redis.connect(settings.cache.url, timeout_s) for _ in range(2)]
    except (TypeError, ValueError) as error:
        reason = (
            "TRIVIUM_CACHE has an option that Redis does not have, that has a value which is not allowed, or that the "
            "service sets: socket_timeout, protocol"
        )
        raise Unavailable(reason, type(error).__name__) from error
    for client in clients:
        stack.push_async_callback(client.aclose)
    prefix = f"trivium:{settings.storage.index_name}"
    reads = redis.GuardedRedis(clients[0], timeout_s)
    level = redis.RedisLevel(reads, f"{prefix}:response:".encode())
    writes = redis.GuardedRedis(clients[1], _WRITE_TIMEOUT_FACTOR * timeout_s)
    invalidation = counters.RedisInvalidationCounters(reads, writes, f"{prefix}:written", _POLL_S)
    stack.push_async_callback(invalidation.flush)  # before the clients are closed
    return level, invalidation, [reads.breaker, writes.breaker]


def _installation_id(data_dir: Path) -> str:
    """A globally unique id of the files in a folder. If it cannot be stored, every process has its own.

    :raises Damaged: if the checksum does not match.
    """
    file = data_dir / INSTALLATION_FILE
    try:
        if not file.exists():
            with files.exclusive(data_dir / f"{INSTALLATION_FILE}.lock"):
                if not file.exists():
                    checked_file.write(file, uuid4().hex.encode())
    except OSError as error:
        _log.warning("responses are not shared with other processes, because %s cannot be written: %s", file, error)
        return uuid4().hex
    return f"{platform.node()} {data_dir} {checked_file.read(file).decode()}"


def content_ids(settings: Settings) -> tuple[str, ...]:
    """What decides a response and is not in its plan: release and format, servers, graph, files, encoder."""
    schema = hashlib.sha256(msgspec.json.encode(msgspec.json.schema(ResponseBody))).hexdigest()
    files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in settings.files_of_ranking]
    encoder = settings.encoding.query_encoder
    # Without their credentials: processes that share a Redis may search different servers.
    servers = [str(settings.sources.address(source) or url) for source, url in settings.sources.urls.items()]
    graph = settings.ranking.centrality, msgspec.json.encode(settings.ranking.link_strengths).decode()
    return version("trivium"), schema, *servers, *graph, settings.encoding.query_expansion, encoder, *files
