"""``collapse: url``: one hit for each url, which only the documents themselves have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adapters.model.batching import batches
from adapters.ports import Snapshot
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Ranked
from orchestrator.planning.plan import RankingPlan
from orchestrator.results.hydration import read_records

_BATCH_DOCUMENTS = 64
"""Candidates that are in memory at once: each may have a megabyte."""


async def collapse_urls(plan: RankingPlan, ranked: Ranked, snapshot: Snapshot, context: SearchContext) -> Ranked:
    """The best document of each url, in its place. A document without a url is dropped for none, nor is one that the
    access check will withhold.

    :raises AllSourcesFailed: if the documents cannot be read.
    """
    check, candidates = visibility_check(plan.filter), ranked.fused.candidates
    best: dict[str, int] = {}
    collapsed_into = dict(ranked.collapsed_into)
    rows: list[int] = []
    for batch in batches(ranked.rows.tolist(), _BATCH_DOCUMENTS):
        numbers = np.array(batch, np.int64)
        records = await read_records(snapshot, candidates.documents(numbers), context)
        for row, id_ in zip(batch, candidates.ids(numbers), strict=True):
            record = records.get(id_)
            url = record.document.url if record and check(record) else None
            if url is None or best.setdefault(url, row) == row:
                rows.append(row)
            else:
                collapsed_into[row] = best[url]
    replacing = set(collapsed_into.values())
    crowded = tuple(sorted(url for url, row in best.items() if row in replacing))
    return replace(ranked, rows=np.array(rows, np.int64), collapsed_into=collapsed_into, crowded_urls=crowded)
