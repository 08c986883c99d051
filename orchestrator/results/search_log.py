"""What the steps of a search did, for its line in the log."""

from __future__ import annotations

from msgspec import UNSET

from orchestrator.execution.stage_results import Page, Ranked, Retrieved
from orchestrator.planning.plan import RankingPlan


def log_fields(plan: RankingPlan, retrieved: Retrieved, ranked: Ranked, page: Page) -> dict[str, object]:
    """``found`` by each source, ``candidates`` when merged, of which ``collapsed`` into others, and ``ranked``; the ids
    of the ``windows`` on the page, if chunks are collapsed to these; what became of reranking, and why; the number of
    hits, if they are ``mixed`` of two profiles.
    """
    hits = page.hits if plan.collapse == "window" else ()
    return {
        "found": {ranking.source: len(ranking) for ranking in retrieved.rankings},
        "candidates": len(ranked.fused.candidates),
        "collapsed": len(ranked.collapsed_into),
        "ranked": page.total,
        "windows": [hit.window_id for hit in hits if hit.window_id],
        "rerank": page.rerank.outcome,
        "rerank_reason": page.rerank.reason,
        **({"mixed": len(page.profiles)} if page.profiles is not UNSET else {}),
    }
