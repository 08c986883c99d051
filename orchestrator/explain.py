"""What an answer was made of, for who asks why."""

from __future__ import annotations

from collections.abc import Sequence

from adapters import DocumentReader
from fusion import Collapsed, DocId, Ranking
from orchestrator.contract import ExplainedHit, Explanation, Removed
from orchestrator.hydrate import Hydrated, lock
from orchestrator.request import Request


async def explain(
    request: Request,
    rankings: Sequence[Ranking],
    below: Sequence[DocId],
    collapsed: Collapsed,
    hydrated: Hydrated,
    documents: DocumentReader,
) -> Explanation:
    """The lock on the hits is on everything that is told here, too.

    :param below: documents under the least score that was asked for.
    :raises AdapterError: if the documents cannot be read.
    """
    plan, query = request.plan, request.plan.query
    records = await documents.fetch(query.scope, sorted({id_ for ranking in rankings for id_ in ranking.ids}))
    visible = await documents.counts("collection", query.access)
    passing = await documents.counts("collection", query.filter)
    may_leave = lock(query.filter)
    shown = {id_ for id_, record in records.items() if may_leave(record)}
    return Explanation(
        fusion=request.fused_by,
        weights=plan.weights,
        boosts=plan.boosts,
        collapse=plan.collapse,
        depth=query.depth,
        timeout_ms=plan.timeout_s * 1_000,
        encoder=request.encoder,
        expansions=request.expansions,
        rankings={
            ranking.source: tuple(ExplainedHit(hit.id, hit.rank, hit.score) for hit in ranking if hit.id in shown)
            for ranking in rankings
        },
        removed=Removed(
            filter=sum(visible.values()) - sum(passing.values()),
            min_score=len(shown.intersection(below)),
            collapsed={id_: to for id_, to in collapsed.into.items() if id_ in shown and to in shown},
            deleted=hydrated.deleted,
            withheld=hydrated.withheld,
        ),
    )
