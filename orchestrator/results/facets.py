"""Counts the values of fields: of all documents that match if these are listed, of all hits if they are ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from adapters.model.facets import Facet
from adapters.ports import Snapshot
from orchestrator.execution.budget import FACETS
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import Ranked
from orchestrator.planning.plan import Plan
from orchestrator.schema.search import Degraded


async def count_facets(
    plan: Plan, ranked: Ranked, snapshot: Snapshot, context: SearchContext
) -> tuple[Mapping[str, Facet] | UnsetType, Sequence[Degraded]]:
    """The facets that the request asks for, by its names of the fields; and the failure of the stage."""
    if not plan.facets:
        return UNSET, ()
    facets: Mapping[str, Facet] = {}
    sizes = {each.field: each.size for each in plan.facets}
    hits = None if plan.listing else ranked.fused.candidates.documents(ranked.rows)
    with context.timings.stage("facets"):
        async with context.best_effort("facets", FACETS) as attempt:
            found = await snapshot.documents.facets(plan.ranking.scope, sizes, plan.ranking.filter, hits)
            facets = {each.name: found[each.field] for each in plan.facets}
    return facets, attempt.failures
