"""Searching each collection by itself, if a request names none: none crowds out another."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from adapters import Snapshot
from fusion import Sources
from orchestrator.planning.budget import COLLECTIONS
from orchestrator.planning.context import SearchContext
from orchestrator.planning.filters import in_collection
from orchestrator.planning.plan import RankingPlan
from orchestrator.retrieval.memo import Memo
from orchestrator.schema.search import MAX_COLLECTIONS, Degraded


@dataclass(frozen=True, slots=True)
class CollectionSplitter:
    """Gives every search of a plan one filter for each collection that the documents have.

    :param memo: of the names that a caller may see, for each data version.
    """

    memo: Memo[tuple[str, ...]]

    async def split(
        self, plan: RankingPlan, sources: Sources, snapshot: Snapshot, context: SearchContext
    ) -> tuple[RankingPlan, list[Degraded]]:
        """The plan with more filters, if there are several collections, and not more than a request may name.

        The names are those of the snapshot, so that a collection is never missed. If they cannot be read, all
        collections are searched as one, and the report says so.
        """
        if plan.left_out is None or not any(sources[call.source].per_collection for call in plan.calls):
            return plan, []
        key = (snapshot.data_version, plan.access)
        degraded: list[Degraded] = []
        names = self.memo.get(key)
        if names is None:
            async with context.best_effort("collections", COLLECTIONS) as attempt:
                names = tuple(sorted(await snapshot.documents.counts("collection", plan.access)))
                self.memo.put(key, names)
            degraded = attempt.failures
        searched = [name for name in names or () if name not in plan.left_out]
        if not 1 < len(searched) <= MAX_COLLECTIONS:
            return plan, degraded
        filters = tuple(in_collection(plan.filter, name) for name in searched)
        calls = tuple(
            replace(call, filters=filters) if sources[call.source].per_collection else call for call in plan.calls
        )
        return replace(plan, calls=calls), degraded
