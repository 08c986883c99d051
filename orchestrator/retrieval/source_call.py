"""One source as it is searched, with one query for each collection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.ports import SourceQuery
from adapters.ports.graph import EntityLookup
from adapters.ports.retriever import ImmediateRetriever
from cache import CacheMode
from fusion.collections import merge_collections
from fusion.columns import Ranking
from fusion.source import Source
from orchestrator.retrieval.memo import MemoizedRetriever


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A source as it is searched.

    :param retriever: of the embedded engine, whose searches wait for nothing; or a chain for a source that waits:
        ``memo → retry → build check → adapter``.
    :param entities: looks up whether a query mentions an entity; only sources of role ``graph`` have it.
    """

    source: Source
    retriever: ImmediateRetriever | MemoizedRetriever
    entities: EntityLookup | None = None

    @property
    def waits(self) -> bool:
        """Whether a search may wait for anything but an iteration of the event loop."""
        return isinstance(self.retriever, MemoizedRetriever)


async def search_in_turn(source: ImmediateRetriever, queries: Sequence[SourceQuery]) -> Ranking:
    """The merged rankings of some queries. Between two of them other requests have an iteration of the event loop:
    twenty may take as long as twenty searches."""
    rankings = [source.search_now(queries[0])]
    for query in queries[1:]:
        await asyncio.sleep(0)
        rankings.append(source.search_now(query))
    return merge_collections(rankings)


async def search_at_once(source: MemoizedRetriever, queries: Sequence[SourceQuery], mode: CacheMode) -> Ranking:
    """The same of a source that waits."""
    if len(queries) == 1:
        return await source.search(queries[0], mode)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(source.search(each, mode)) for each in queries]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return merge_collections([task.result() for task in tasks])
