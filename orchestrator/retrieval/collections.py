"""Searches each collection separately if a request names none, so that no collection displaces another."""

from __future__ import annotations

from cachetools import LRUCache
from msgspec.structs import replace

from adapters.model.filter import Filter
from adapters.ports import Snapshot
from cache import CacheMode, SingleFlight
from fusion.source import Sources
from orchestrator.execution.budget import COLLECTIONS
from orchestrator.execution.search_context import SearchContext
from orchestrator.planning.filters import NAMED_ONLY, in_collection, in_other_collections
from orchestrator.planning.plan import RankingPlan
from orchestrator.retrieval.memo import MAX_ENTRIES, Memo
from orchestrator.schema.search import Degraded

_MAX_LISTS = 5
"""Maximum number of separate searches of a source; more collections are one list, unless a request names them."""
_MAX_NAMES = _MAX_LISTS + len(NAMED_ONLY)


class CollectionSplitter:
    """Gives every search of a plan one filter for each collection that the documents have.

    :param memo: of the names that a caller may see, for each data version.
    """

    def __init__(self, memo: Memo[tuple[str, ...]]) -> None:
        self._memo = memo
        self._loads: SingleFlight[tuple[str, ...]] = SingleFlight()
        self._newest: LRUCache[Filter, tuple[str, ...]] = LRUCache(MAX_ENTRIES)

    async def split(
        self, plan: RankingPlan, sources: Sources, snapshot: Snapshot, context: SearchContext, mode: CacheMode
    ) -> tuple[RankingPlan, list[Degraded]]:
        """The plan with more filters, if there are several collections, and not too many.

        The names are those of the snapshot. If they cannot be read in time, the newest known ones are used, and all
        other collections are one more list, so that no document is missed. If no names are known, all collections are
        searched as one list, which is reported.
        """
        if plan.left_out is None or not any(sources[call.source].per_collection for call in plan.calls):
            return plan, []
        failures: list[Degraded] = []
        is_known = True
        # Those of a commit that is pinned are exact: a request that bypasses caches would read the same again.
        is_exact = snapshot.view is not None and snapshot.documents is snapshot.view
        may_use = mode == "use" or is_exact
        names = self._memo.get((snapshot.data_version, plan.access)) if may_use else None
        if names is None:
            async with context.best_effort("collections", COLLECTIONS) as attempt:
                names = await self._load(plan.access, snapshot)
            if attempt.failures:
                is_known = False
                names = self._newest.get(plan.access)
                failures = attempt.failures if names is None else []
        searched = [name for name in names or () if name not in plan.left_out]
        filters = [in_collection(plan.filter, name) for name in searched]
        if not is_known and searched:
            filters.append(in_other_collections(plan.filter, tuple(searched)))
        if not 1 < len(filters) <= _MAX_LISTS:
            return plan, failures
        calls = tuple(
            replace(call, filters=tuple(filters)) if sources[call.source].per_collection else call
            for call in plan.calls
        )
        return replace(plan, calls=calls), failures

    async def _load(self, access: Filter, snapshot: Snapshot) -> tuple[str, ...]:
        """The names, read once for all requests that wait. The read continues after a request has timed out."""
        key = (snapshot.data_version, access)

        async def load() -> tuple[str, ...]:
            counts = await snapshot.documents.counts("collection", access)
            # Names that are too many for separate lists are not cached.
            names = tuple(sorted(counts)) if len(counts) <= _MAX_NAMES else ()
            self._memo.put(key, names)
            self._newest[access] = names
            return names

        self._loads.run_detached(key, load)
        return await self._loads.run(key, load)
