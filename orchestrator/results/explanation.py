"""Explains how a response was computed. The access check of hits applies to everything in it, too."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from adapters.model.batching import batches
from adapters.ports import Snapshot
from fusion.columns import Documents, Ranking
from fusion.doc_ids import id_and_collection
from fusion.values import DocId
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.stage_results import Page, Ranked, Retrieved
from orchestrator.planning.plan import Plan
from orchestrator.schema.explain import ExplainedHit, Explanation, Removed, RemovedDocument

_BATCH_DOCUMENTS = 64
"""Candidates that are in memory at once: each may have a megabyte."""
_MAX_LISTED = 100
"""Documents that are listed for each stage."""


async def explain(
    plan: Plan, retrieved: Retrieved, ranked: Ranked, page: Page, snapshot: Snapshot, generation: str
) -> Explanation:
    """The explanation of a page. It is the same for every request with the same plan: it is cached with the hits.

    :param generation: name of the generation that was searched.
    :raises AdapterError: if the documents cannot be read.
    """
    documents, ranking = snapshot.documents, plan.ranking
    ids = sorted({id_ for each in retrieved.rankings for id_ in each.ids})
    check = visibility_check(ranking.filter)
    shown: set[str] = set()
    for batch in batches(ids, _BATCH_DOCUMENTS):
        records = await documents.fetch(ranking.scope, Documents.of_ids(batch))
        shown |= {id_ for id_, record in records.items() if check(record)}
    visible = await documents.counts("collection", ranking.access)
    passing = await documents.counts("collection", ranking.filter)
    candidates = ranked.fused.candidates
    dropped = (ranked.fused.below, ranked.unsure)
    below, unsure = ([id_ for id_ in candidates.ids(rows) if id_ in shown] for rows in dropped)
    rows = np.array(list(ranked.collapsed_into.items()), np.int64).reshape(-1, 2)
    collapsed = zip(candidates.ids(rows[:, 0]), candidates.ids(rows[:, 1]), strict=True)
    return Explanation(
        generation=generation,
        profile=plan.profile,
        fusion=ranked.fused.strategy,
        weights=ranking.weights,
        boosts=tuple(boost.name for boost in ranking.boosts),
        collapse=ranking.collapse,
        depth=ranking.depth,
        encoder=retrieved.encoder,
        expansions=retrieved.expansions,
        rankings={each.source: _explained(each, shown) for each in retrieved.rankings},
        removed=Removed(
            filter=sum(visible.values()) - sum(passing.values()),
            min_score=len(below),
            min_confidence=len(ranked.unsure),
            collapsed={_id(one): _id(into) for one, into in collapsed if one in shown and into in shown},
            deleted=page.deleted,
            withheld=page.withheld,
            documents={"min_score": _listed(below), "min_confidence": _listed(unsure)},
        ),
    )


def _explained(ranking: Ranking, shown: AbstractSet[str]) -> tuple[ExplainedHit, ...]:
    listed = [each for each in ranking if each.id in shown]
    scores = np.array([each.score for each in listed])
    width = np.ptp(scores) if listed else 0.0
    normalized = (scores - scores.min()) / width if width else np.ones(len(listed))
    return tuple(
        ExplainedHit(*id_and_collection(each.id), each.rank, each.score, value)
        for each, value in zip(listed, normalized.tolist(), strict=True)
    )


def _listed(ids: Sequence[DocId]) -> tuple[RemovedDocument, ...]:
    return tuple(RemovedDocument(*id_and_collection(each)) for each in ids[:_MAX_LISTED])


def _id(identity: DocId) -> str:
    return id_and_collection(identity)[0]
