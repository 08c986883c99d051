"""Reads the documents that match a filter in an order, where there is no query to rank them by."""

from __future__ import annotations

import numpy as np

from adapters.ports import Snapshot
from adapters.ports.listing import MAX_LISTED_HITS, SortKey
from fusion.columns import Candidates
from fusion.sums import Fused
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import FusedCandidates, Ranked, Retrieved
from orchestrator.planning.plan import Plan


async def listed(
    plan: Plan, sort: SortKey | None, snapshot: Snapshot, context: SearchContext, timeout_s: float
) -> tuple[Retrieved, Ranked]:
    """The documents of a page and of those before it, and the one after it: all with the score 0.

    :param timeout_s: maximum time for reading them.
    :raises AllSourcesFailed: if they cannot be read in time.
    """
    count = min(plan.page.offset + plan.page.limit + 1, MAX_LISTED_HITS)
    async with context.reading_documents(context.deadline.within(1.0, timeout_s)):
        documents, total = await snapshot.documents.ordered(plan.ranking.filter, sort, count)
    rows, zeros = np.arange(len(documents)), np.zeros(len(documents))
    candidates = Candidates(documents.docs, documents.table, None, {}, {}, {}, {})
    fused = FusedCandidates(candidates, Fused(rows, zeros, zeros, {}, {}), rows[:0], "none", "")
    return Retrieved((), (), "none", (), (), matched=total), Ranked(rows, zeros, fused, {}, {})
