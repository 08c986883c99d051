"""Memos of rankings and centralities, for other pages, other weights and other responses with the same parts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import LRUCache

from adapters import Scope
from adapters.model.filter_hash import filter_key
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.ports import Retriever, Snapshot, SourceQuery
from adapters.ports.graph import CentralityReader
from cache import CacheMode, hash_key
from fusion.columns import Ranking
from fusion.values import DocId
from orchestrator.indexing.data_version import DataVersion

V = TypeVar("V")

MAX_ENTRIES = 1_000
_ABSENT = (0.0, None)


class Memo(Generic[V]):
    """The most recently used values, each for ``ttl_s`` seconds, with counters of hits and misses.

    The time limit bounds how long a write of another machine is ignored if it is not reported.

    :param commit: of the files that values refer to. When it changes, all values are dropped: a ranking references
        the whole commit that it was read from.
    """

    def __init__(
        self,
        ttl_s: float,
        clock: Callable[[], float],
        max_entries: int = MAX_ENTRIES,
        commit: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self.hits = 0
        self.misses = 0
        self._ttl_s = ttl_s
        self._clock = clock
        self._values: LRUCache[Hashable, tuple[float, V]] = LRUCache(max_entries)
        self._commit = commit
        self._commit_of_values = commit()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value, or ``None``."""
        self._drop_older()
        expires_at, value = self._values.get(key, _ABSENT)
        if value is None or expires_at <= self._clock():
            self.misses += 1
            return None
        self.hits += 1
        return value

    def put(self, key: Hashable, value: V) -> None:
        """Store a value."""
        self._drop_older()
        self._values[key] = self._clock() + self._ttl_s, value

    def _drop_older(self) -> None:
        if (commit := self._commit()) != self._commit_of_values:
            self._values.clear()
            self._commit_of_values = commit


@dataclass(frozen=True, slots=True)
class MemoizedRetriever:
    """A source whose rankings are memoized while the data version of their scope stays the same."""

    retriever: Retriever
    memo: Memo[Ranking]
    data_version: Callable[[Scope], DataVersion]

    async def search(self, query: SourceQuery, mode: CacheMode = "use") -> Ranking:
        """See :class:`adapters.ports.Retriever`.

        :param mode: ``use`` a memoized ranking; ``refresh`` it; or ``bypass`` the memo.
        """
        if mode == "bypass":
            return await self.retriever.search(query)
        key = self._key(query)
        if mode == "use" and (ranking := self.memo.get(key)) is not None:
            return ranking
        ranking = await self.retriever.search(query)
        self.memo.put(key, ranking)
        return ranking

    def _key(self, query: SourceQuery) -> bytes:
        version = query.snapshot.data_version if query.snapshot else self.data_version(query.scope)
        return hash_key(
            version,
            query.scope,
            query.text,
            query.depth,
            filter_key(query.access),
            filter_key(query.filter),
            None if query.vector is None else query.vector.tobytes(),
            query.seed_ids,
            query.hops,
            query.expansions,
        )


@dataclass(frozen=True, slots=True)
class MemoizedCentralities:
    """Memoized centralities. The time limit is necessary: they are computed again without a write."""

    reader: CentralityReader
    memo: Memo[Mapping[DocId, float]]
    data_version: Callable[[Scope], DataVersion]

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[DocId],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[DocId, float]:
        """See :class:`adapters.ports.CentralityReader`."""
        version = snapshot.data_version if snapshot else self.data_version(scope)
        key = hash_key(version, scope, clearance, tuple(ids))
        values = self.memo.get(key)
        if values is None:
            values = await self.reader.centralities(scope, ids, snapshot, clearance)
            self.memo.put(key, values)
        return values
