"""The data version: a cached response is valid while it is the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from adapters import Scope
from adapters.servers.fingerprints import fingerprint
from cache import InvalidationCounters

INSTALLATION_FILE = "installation-id"
"""File of a data folder that identifies it; there is one as soon as anything was written."""
_ALL_SCOPES = "*"

DataVersion: TypeAlias = tuple[str | int, ...]
"""Differs whenever the documents of a scope may differ."""


class VersionSource(Protocol):
    """A part of the data that this process searches."""

    def data_version(self) -> int:
        """A number that changes whenever searches of this process may return other documents."""
        ...


class DataVersions:
    """The data version of each scope.

    :param local: what this process searches in its own files; empty if all data is on servers and Redis reports writes.
    :param installation_id: id of these files: the versions of other files are not comparable.
    :param counters: the counters in Redis, if there is a Redis.
    """

    def __init__(
        self, local: Sequence[VersionSource], installation_id: str, counters: InvalidationCounters | None
    ) -> None:
        self._local = local
        self._installation_id = installation_id
        self._counters = counters

    def current(self, scope: Scope) -> DataVersion:
        """The version as far as this process knows."""
        version: DataVersion = (self._installation_id, *self.commit())
        if self._counters is None:
            return version
        return *version, self._counters.known(_counter(scope)), self._counters.known(_ALL_SCOPES)

    def commit(self) -> tuple[int, ...]:
        """The part of :meth:`current` that is about files of this process: the same for all scopes."""
        return tuple(each.data_version() for each in self._local)

    async def ensure_loaded(self, scope: Scope) -> bool:
        """Load the counters of a scope. Returns whether :meth:`current` is the same in other processes."""
        return self._counters is None or await self._counters.ensure_loaded((_counter(scope), _ALL_SCOPES))

    async def advance(self, scopes: Iterable[Scope], all_scopes: bool = False) -> None:
        """Invalidate cached responses of these scopes: this process returns none of them from now on.

        :param all_scopes: whether documents of other scopes may have changed, too, because earlier writes were applied.
        """
        if self._counters:
            await self._counters.increment([*map(_counter, scopes), *([_ALL_SCOPES] if all_scopes else [])])


@lru_cache(maxsize=10_000)
def _counter(scope: Scope) -> str:
    return fingerprint(scope.tenant, scope.environment)
