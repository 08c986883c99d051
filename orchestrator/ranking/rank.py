"""The order of the candidates: fuse, boost, collapse chunks, apply the minimum confidence. Pure."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from fusion.boosts import Boosted, Factors, boost
from fusion.chunks import collapse
from fusion.columns import Candidates
from fusion.concatenate import Concatenate
from fusion.confidence import Confidences
from fusion.rank_fields import Ints
from fusion.source import Sources
from orchestrator.execution.stage_results import FusedCandidates, Ranked
from orchestrator.planning.plan import RankingPlan
from orchestrator.planning.strategies import NAMED, Strategies

_log = logging.getLogger(__name__)


def fuse(
    plan: RankingPlan, candidates: Candidates, sources: Sources, strategies: Strategies = NAMED
) -> FusedCandidates:
    """Fuse as planned; if the strategy raises, concatenate the rankings."""
    strategy, _ = strategies.find(plan.strategy)
    used, warning = plan.strategy, ""
    try:
        fused = strategy(candidates, plan.weights, sources)
    except Exception:
        _log.exception("fusion by %s failed", strategy)
        fallback = Concatenate()
        used, warning = str(fallback), f"{strategy} failed, {fallback} was used"
        fused = fallback(candidates, plan.weights, sources)
    above = fused.above(plan.min_score)
    return FusedCandidates(candidates, above, fused.rows[len(above.rows) :], used, warning)


def apply_boosts(fused: FusedCandidates, factors: Factors, sources: Sources, first: Ints | None = None) -> Boosted:
    """Multiply the fusion scores by the factors and sort again.

    :param first: numbers of documents that come before all others, which get no higher scores than these.
    """
    boosted = boost(fused.candidates, fused.fused, factors, sources)
    if first is None:
        return boosted
    is_first = np.isin(fused.candidates.docs[boosted.rows], first)
    scores = boosted.score[is_first]
    others = np.minimum(boosted.score[~is_first], scores.min(initial=np.inf))
    return Boosted(np.concatenate((boosted.rows[is_first], boosted.rows[~is_first])), np.concatenate((scores, others)))


def apply_collapse(plan: RankingPlan, fused: FusedCandidates, boosted: Boosted, factors: Factors) -> Ranked:
    """Drop chunks and parents that another result replaces."""
    collapsed = collapse(fused.candidates, boosted.rows, plan.collapse, plan.window_radius)
    score = np.zeros(len(fused.candidates))
    score[boosted.rows] = boosted.score
    return Ranked(collapsed.rows, score, fused, factors, collapsed.collapsed_into)


def apply_confidence(plan: RankingPlan, ranked: Ranked, sources: Sources) -> Ranked:
    """Compute the confidence, and drop all hits if that of the response is too low."""
    confidences = Confidences.of(ranked.fused.candidates, sources, plan.text, plan.calibrations)
    if confidences.answer is None or confidences.answer >= plan.min_confidence:
        return replace(ranked, confidences=confidences)
    return replace(ranked, rows=ranked.rows[:0], unsure=ranked.rows, confidences=confidences)
