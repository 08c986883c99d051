"""Documents whose chunks leave no room for others: what a further search leaves out, so that a page is filled."""

from __future__ import annotations

from dataclasses import replace as replaced

import numpy as np
from msgspec.structs import replace

from adapters.model.filter import And, Eq, Filter, In, Not, conjunction, normal
from fusion.columns import extended
from fusion.doc_ids import id_and_collection
from orchestrator.execution.stage_results import Ranked, Retrieved
from orchestrator.planning.plan import RankingPlan


def without_crowds(plan: RankingPlan, ranked: Ranked) -> RankingPlan | None:
    """A plan that leaves out the chunks of each document, or the documents of each url, of which several were found;
    ``None`` if there is none."""
    if plan.collapse == "url":
        return narrowed(plan, normal(Not(In("url", ranked.crowded_urls)))) if ranked.crowded_urls else None
    candidates, fields = ranked.fused.candidates, ranked.fused.candidates.fields
    rows = np.unique(np.fromiter(ranked.collapsed_into.values(), np.int64, len(ranked.collapsed_into)))
    if fields is None or not len(rows := rows[fields.parent[rows] >= 0]):
        return None
    parents: dict[str, set[str]] = {}
    for identity, parent in zip(candidates.ids(rows), fields.parent[rows].tolist(), strict=True):
        of_collection = parents.setdefault(id_and_collection(identity)[1], set())
        of_collection.add(id_and_collection(fields.parents[parent])[0])
    crowds = [
        Not(And((Eq("collection", collection), In("parent_id", tuple(sorted(ids))))))
        for collection, ids in sorted(parents.items())
    ]
    return narrowed(plan, normal(And(tuple(crowds))))


def narrowed(plan: RankingPlan, condition: Filter) -> RankingPlan:
    """The plan with a further condition, in normal form, on every document."""
    calls = tuple(
        replace(call, filters=tuple(conjunction(each, condition) for each in call.filters)) for call in plan.calls
    )
    return replace(plan, filter=conjunction(plan.filter, condition), calls=calls)


def with_further(retrieved: Retrieved, more: Retrieved) -> Retrieved:
    """What was retrieved, and after it what a further search found."""
    return replaced(
        retrieved,
        rankings=tuple(extended(retrieved.rankings, more.rankings)),
        first=retrieved.first or tuple(map(len, retrieved.rankings)),
        degraded=(*retrieved.degraded, *more.degraded),
    )
