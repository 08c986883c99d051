"""The factors of each boost, as columns over the candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import numpy as np

from adapters.model.filter import clearance_of
from adapters.ports import Snapshot
from adapters.ports.graph import CentralityReader
from fusion.boosts import centrality, importance, recency, relationship
from fusion.columns import Candidates
from fusion.rank_fields import Floats
from fusion.source import Sources
from orchestrator.execution.budget import BOOSTS
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import FusedCandidates
from orchestrator.planning.plan import DAY_S, BoostPlan, RankingPlan
from orchestrator.schema.search import Degraded


async def boost_columns(
    plan: RankingPlan,
    fused: FusedCandidates,
    sources: Sources,
    centralities: CentralityReader,
    snapshot: Snapshot,
    context: SearchContext,
) -> tuple[dict[str, Floats | None], list[Degraded]]:
    """The factors of each planned boost, and a report for each boost that failed, which is left out."""
    factors: dict[str, Floats | None] = {}
    degraded: list[Degraded] = []
    for boost in plan.boosts:
        if boost.name == "centrality":
            async with context.best_effort("boosts", BOOSTS) as attempt:
                factors[boost.name] = await _centrality(plan, boost, fused, centralities, snapshot)
            degraded += attempt.failures
        else:
            factors[boost.name] = _by_columns(plan, boost, fused.candidates, sources)
    return factors, degraded


def _by_columns(plan: RankingPlan, boost: BoostPlan, candidates: Candidates, sources: Sources) -> Floats | None:
    """A boost that is known from the candidates alone; ``None`` if it applies to none of them."""
    match boost.name:
        case "importance":
            if candidates.fields is None:
                return None
            return _where_known(candidates.fields.importance, lambda values: importance(values, boost.weight))
        case "recency":
            if candidates.fields is None:
                return None
            # Ages are counted from the beginning of the day: the factor is the same for all of that day.
            return _where_known(
                candidates.fields.created_at,
                lambda created_at: recency((plan.day * DAY_S - created_at) / DAY_S, boost.weight, boost.half_life_days),
            )
        case "relationship":
            return _relationship(boost, candidates, sources)
        case "centrality":
            raise ValueError("centralities are read, not computed from columns")
        case _:
            assert_never(boost.name)


def _where_known(values: Floats, factor: Callable[[Floats], Floats]) -> Floats | None:
    """The factors of the values; a candidate without a value counts like the median of the others."""
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        return None
    known = factor(values[rows])
    column = np.full(len(values), np.median(known))
    column[rows] = known
    return column


def _relationship(boost: BoostPlan, candidates: Candidates, sources: Sources) -> Floats | None:
    """The factors by the score of the walk divided by its best score; ``None`` without a walk."""
    for name in candidates.sources:
        if sources[name].is_graph and len(rows := candidates.rows[name]):
            scores = candidates.scores[name]
            best = scores.max()
            if best > 0:
                column = np.ones(len(candidates))
                column[rows] = relationship(np.maximum(scores, 0.0) / best, boost.weight)
                return column
    return None


async def _centrality(
    plan: RankingPlan,
    boost: BoostPlan,
    fused: FusedCandidates,
    reader: CentralityReader,
    snapshot: Snapshot,
) -> Floats | None:
    rows = fused.fused.rows
    ids = fused.candidates.ids(rows)
    values = await reader.centralities(plan.scope, ids, snapshot, clearance_of(plan.access))
    if not values:
        return None
    column = np.ones(len(fused.candidates))
    column[rows] = centrality(np.array([values.get(id_, 0.0) for id_ in ids]), boost.weight)
    return column
