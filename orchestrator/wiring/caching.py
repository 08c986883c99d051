"""What is kept, where, and who says when it is old."""

from __future__ import annotations

import platform
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic, time
from typing import Any
from uuid import uuid4

from adapters import Priors, Retriever, Unavailable
from cache import Memo, Memory, Numbers, SecondLevel, Stats, Tiered, Times
from orchestrator.contract import CacheLevel, CacheReport
from orchestrator.remember import Remembered, RememberedPriors
from orchestrator.settings import MEMORY, Settings
from orchestrator.versions import Stamped, Versions

_MOMENT_S = 1.0
"""Seconds that an answer is kept which was partly missing."""


class Caching:
    """The cache that the settings name.

    :param seen: what is read in this process of its own files; ``all_served`` says that every source is on a server.
    :param stack: closes what is opened here.
    """

    def __init__(self, settings: Settings, seen: Sequence[Stamped], all_served: bool, stack: AsyncExitStack) -> None:
        self._settings = settings
        self.generations: Numbers | None = None
        self._memos: dict[str, Memo[bytes, Any]] = {}
        second: SecondLevel | None = None
        if settings.cache != MEMORY:
            second, self.generations = _redis(settings, stack)
        here = () if all_served and self.generations else seen
        self.versions = Versions(here, _place(settings.data_dir) if here else "", self.generations)
        times = Times(settings.cache_ttl_s, settings.cache_stale_s, min(_MOMENT_S, settings.cache_ttl_s))
        self.answers = Tiered(Memory(settings.cache_bytes), second, times, time, random.random)

    def remembered(self, sources: Mapping[str, Retriever]) -> dict[str, Retriever]:
        """The sources, each with a memo of its own."""
        seconds = self._settings.cache_ttl_s
        return {
            name: Remembered(source, self._memo(name), self.versions.now, seconds, monotonic)
            for name, source in sources.items()
        }

    def remembered_priors(self, priors: Priors) -> Priors:
        """The priors, with a memo."""
        return RememberedPriors(
            priors, self._memo("centralities"), self.versions.now, self._settings.cache_ttl_s, monotonic
        )

    def report(self) -> CacheReport:
        """What each level did so far."""
        first, second = self.answers.l1, self.answers.l2
        levels = {"l1": _level(first.stats, entries=len(first), bytes=first.bytes)}
        if second:
            levels["l2"] = _level(second.stats, state=second.state)
        for name, memo in self._memos.items():
            levels[name] = CacheLevel(hits=memo.hits, misses=memo.misses, entries=len(memo))
        return CacheReport(levels, len(self.answers.flights), self.answers.flights.joined)

    def _memo(self, name: str) -> Memo[bytes, Any]:
        return self._memos.setdefault(name, Memo(self._settings.ranking_memo))


def _level(stats: Stats, **held: Any) -> CacheLevel:
    return CacheLevel(
        hits=stats.hits,
        misses=stats.misses,
        stale=stats.stale,
        stored=stats.stored,
        evictions=stats.evictions,
        errors=stats.errors,
        skipped=stats.skipped,
        mean_age_s=stats.mean_age_s,
        hit_rate=stats.hit_rate,
        **held,
    )


def _redis(settings: Settings, stack: AsyncExitStack) -> tuple[SecondLevel, Numbers]:
    try:
        from cache import generations, redis  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'trivium[redis]'") from error
    deadline_s = settings.cache_timeout_ms / 1_000
    # Two clients, so that answers do not keep the numbers from their connections.
    clients = [redis.connect(settings.cache, deadline_s) for _ in range(2)]
    for client in clients:
        stack.push_async_callback(client.aclose)
    prefix = f"trivium:{settings.index_name}"
    reads = redis.Guarded(clients[0], deadline_s)
    level = redis.RedisLevel(reads, f"{prefix}:answer:".encode())
    writes = redis.Guarded(clients[1], 10 * deadline_s)
    numbers = generations.Generations(reads, writes, f"{prefix}:written", settings.cache_poll_ms / 1_000)
    stack.push_async_callback(numbers.flush)  # ends before the clients do
    return level, numbers


def _place(data_dir: Path) -> str:
    """A name for the files in a folder that no other folder has, on whatever machine."""
    file = data_dir / "place"
    try:
        with file.open("x") as new:
            new.write(uuid4().hex)
    except FileExistsError:
        pass
    return f"{platform.node()} {data_dir} {file.read_text()}"
