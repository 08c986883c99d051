"""Explains how a response was computed. The access check of hits applies to everything in it, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType

from adapters.model.batching import batches
from adapters.model.term_score import TermScore
from adapters.ports import Snapshot, SourceQuery, TermScorer
from fusion.columns import Documents, Ranking
from fusion.doc_ids import doc_id, id_and_collection
from fusion.values import DocId
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.budget import EXPLAIN
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Page, Ranked, Retrieved
from orchestrator.planning.plan import Plan, RankingPlan
from orchestrator.schema.explain import ExplainedHit, Explanation, Removed, RemovedDocument
from orchestrator.schema.search import Degraded

_BATCH_DOCUMENTS = 64
"""Candidates that are in memory at once: each may have a megabyte."""
_MAX_LISTED = 100
"""Documents that are listed for each stage."""


@dataclass(frozen=True, slots=True)
class ExplainStage:
    """Explains pages to callers who ask for it.

    :param generation: name of the generation that is searched.
    :param scorers: of the sources that rank by terms, by name.
    """

    generation: str
    scorers: Mapping[str, TermScorer]

    async def run(
        self, plan: Plan, retrieved: Retrieved, ranked: Ranked, page: Page, snapshot: Snapshot, context: SearchContext
    ) -> tuple[Explanation | UnsetType, Sequence[Degraded]]:
        """The explanation of a page, if the request asks for one; and the failure of the stage."""
        if not plan.page.explain:
            return UNSET, ()
        explanation: Explanation | UnsetType = UNSET
        async with context.best_effort("explain", EXPLAIN) as attempt:
            explanation = await self._explanation(plan, retrieved, ranked, page, snapshot)
        return explanation, attempt.failures

    async def _explanation(
        self, plan: Plan, retrieved: Retrieved, ranked: Ranked, page: Page, snapshot: Snapshot
    ) -> Explanation:
        """The explanation. It is the same for every request with the same plan: it is cached with the hits."""
        documents, ranking = snapshot.documents, plan.ranking
        ids = sorted({id_ for each in retrieved.rankings for id_ in each.ids})
        check = visibility_check(ranking.filter)
        shown: set[str] = set()
        for batch in batches(ids, _BATCH_DOCUMENTS):
            records = await documents.fetch(ranking.scope, Documents.of_ids(batch))
            shown |= {id_ for id_, record in records.items() if check(record)}
        visible = await documents.counts("collection", ranking.access)
        passing = await documents.counts("collection", ranking.filter)
        hits = shown.intersection(doc_id(hit.id, hit.collection) for hit in page.hits)
        terms = await _terms(plan.ranking, retrieved, hits, snapshot, self.scorers)
        candidates = ranked.fused.candidates
        dropped = (ranked.fused.below, ranked.unsure)
        below, unsure = ([id_ for id_ in candidates.ids(rows) if id_ in shown] for rows in dropped)
        rows = np.array(list(ranked.collapsed_into.items()), np.int64).reshape(-1, 2)
        collapsed = zip(candidates.ids(rows[:, 0]), candidates.ids(rows[:, 1]), strict=True)
        return Explanation(
            generation=self.generation,
            profile=plan.profile,
            fusion=ranked.fused.strategy,
            weights=ranking.weights,
            boosts=tuple(boost.name for boost in ranking.boosts),
            collapse=ranking.collapse,
            depth=ranking.depth,
            encoder=retrieved.encoder,
            expansions=retrieved.expansions,
            rankings={each.source: _explained(each, shown, terms.get(each.source)) for each in retrieved.rankings},
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


_Terms: TypeAlias = Mapping[DocId, Sequence[TermScore]]


async def _terms(
    plan: RankingPlan,
    retrieved: Retrieved,
    hits: AbstractSet[DocId],
    snapshot: Snapshot,
    scorers: Mapping[str, TermScorer],
) -> Mapping[str, _Terms]:
    """The terms of the query in the hits that a source found, by source, for those that rank by terms."""
    query = SourceQuery(
        plan.text, plan.depth, plan.scope, plan.access, plan.filter, expansions=retrieved.expansions, snapshot=snapshot
    )
    return {
        each.source: await scorers[each.source].term_scores(query, [id_ for id_ in each.ids if id_ in hits])
        for each in retrieved.rankings
        if each.source in scorers
    }


def _explained(ranking: Ranking, shown: AbstractSet[str], terms: _Terms | None) -> tuple[ExplainedHit, ...]:
    listed = [each for each in ranking if each.id in shown]
    scores = np.array([each.score for each in listed])
    width = np.ptp(scores) if listed else 0.0
    normalized = (scores - scores.min()) / width if width else np.ones(len(listed))
    return tuple(
        ExplainedHit(*id_and_collection(each.id), each.rank, each.score, value, _terms_of(each.id, terms))
        for each, value in zip(listed, normalized.tolist(), strict=True)
    )


def _terms_of(id_: DocId, terms: _Terms | None) -> tuple[TermScore, ...] | UnsetType:
    return tuple(terms[id_]) if terms and id_ in terms else UNSET


def _listed(ids: Sequence[DocId]) -> tuple[RemovedDocument, ...]:
    return tuple(RemovedDocument(*id_and_collection(each)) for each in ids[:_MAX_LISTED])


def _id(identity: DocId) -> str:
    return id_and_collection(identity)[0]
