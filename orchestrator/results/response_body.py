"""Makes the body of the response from the results of all stages. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, UnsetType

from adapters.model.facets import Facet
from adapters.ports import Snapshot
from adapters.ports.listing import MAX_LISTED_HITS
from cache import hash_key
from orchestrator.execution.stage_results import Page, Ranked, Retrieved
from orchestrator.planning.page_token import HASH_BYTES, PageToken
from orchestrator.planning.plan import Plan
from orchestrator.schema.explain import Explanation
from orchestrator.schema.search import Degraded, ResponseBody, Route, Total


def respond(
    plan: Plan,
    retrieved: Retrieved,
    ranked: Ranked,
    page: Page,
    degraded: Sequence[Degraded],
    snapshot: Snapshot,
    build_id: str,
    explanation: Explanation | UnsetType = UNSET,
    *,
    facets: Mapping[str, Facet] | UnsetType = UNSET,
    warnings: Sequence[str] = (),
) -> ResponseBody:
    """The body of the response."""
    return ResponseBody(
        hits=page.hits,
        total=_total(plan, retrieved, page),
        mode=plan.mode,
        route=_route(plan, retrieved),
        encoder=retrieved.encoder,
        confidence=ranked.confidences.answer,
        degraded=tuple(degraded),
        warnings=(*warnings, *_end_of_list(retrieved, page)),
        index_version=build_id,
        generation=snapshot.generation,
        next_cursor=_next_cursor(plan, retrieved, ranked, page, snapshot),
        context=page.context,
        facets=facets,
        profiles=page.profiles,
        explain=explanation,
    )


def execution_hash(plan: Plan, retrieved: Retrieved, ranked: Ranked) -> bytes:
    """A hash of how the ranking was computed: it has to be the same on every page."""
    boosts: dict[str, tuple[float, float | None]] = {
        boost.name: (boost.weight, boost.half_life_days) for boost in plan.ranking.boosts
    }
    return hash_key(
        [ranking.source for ranking in retrieved.rankings],
        ranked.fused.strategy,
        sorted(plan.ranking.weights.items()),
        [(name, boosts.get(name)) for name in sorted(ranked.factors)],
        plan.ranking.window_radius,
        retrieved.expansions,
        *([ranked.mixed_with.hex()] if ranked.mixed_with else []),
    )[:HASH_BYTES]


def page_warning(plan: Plan, retrieved: Retrieved, ranked: Ranked, generation: int) -> str:
    """Why this page may not continue the first one; empty if it does."""
    token = plan.page.token
    if token is None:
        return ""
    if token.generation != generation:
        return "documents were written since the first page: hits may repeat or be missing"
    if token.execution_hash != execution_hash(plan, retrieved, ranked):
        return "the ranking changed since the first page: hits may repeat or be missing"
    return ""


def _end_of_list(retrieved: Retrieved, page: Page) -> Iterator[str]:
    """A warning on the last page of a list that leaves documents out."""
    left = (retrieved.matched or 0) - MAX_LISTED_HITS
    if left > 0 and page.end >= MAX_LISTED_HITS:
        yield f"{left} more documents match, and {MAX_LISTED_HITS} can be listed: narrow the filter, or export them"


def _total(plan: Plan, retrieved: Retrieved, page: Page) -> Total:
    """The number of hits on all pages. Only the documents of this page were read: others may have been deleted."""
    if retrieved.matched is not None:
        return Total(retrieved.matched - page.deleted - page.withheld, "eq")
    has_failed = len(retrieved.rankings) < len(retrieved.searched)
    is_exact = retrieved.is_exhausted(plan.ranking.depth) and not has_failed
    is_mixed = page.profiles is not UNSET
    return Total(page.total - page.deleted - page.withheld, "eq" if is_exact and not is_mixed else "gte")


def _next_cursor(plan: Plan, retrieved: Retrieved, ranked: Ranked, page: Page, snapshot: Snapshot) -> str | None:
    """The token of the next page, if there is one. The result of a reranker has no pages."""
    if page.end >= page.total or plan.page.rerank:
        return None
    first = plan.page.token
    return PageToken.at(
        page.end,
        plan.page.ranking_hash,
        first.execution_hash if first else execution_hash(plan, retrieved, ranked),
        first.generation if first else snapshot.generation,
        plan.ranking.depth,
        plan.ranking.day,
        retrieved.encoder,
    ).encode()


def _route(plan: Plan, retrieved: Retrieved) -> Route:
    """The sources that were searched, and the reason, also for a planned source that was skipped."""
    planned = plan.ranking.sources
    if retrieved.searched == planned:
        return Route(planned, plan.reason)
    skipped = " and ".join(source for source in planned if source not in retrieved.searched)
    reason = f"{plan.reason}; {skipped} skipped: no entity in the query, and the other sources agree"
    return Route(retrieved.searched, reason)
