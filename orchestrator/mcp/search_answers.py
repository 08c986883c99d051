"""The response to a search in lines of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

from orchestrator.mcp.answers import exact, unless_shared
from orchestrator.results.lines import one_line
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import SearchResponse

_TITLE_CHARS, _NAME_CHARS, _REASON_CHARS = 160, 80, 120
_SNIPPET_CHARS = 480
_NEIGHBORS_CHARS = 4_000
"""Of the text of a hit with its neighbours."""
_MAX_NAMES = 6
_MARK = re.compile(r"</?mark>")


def head(response: SearchResponse) -> str:
    """How many were found, where, and what failed."""
    if not response.hits:
        lines = ["Nothing found."]
        if response.route.sources:
            lines.append(f"Searched: {', '.join(response.route.sources)}. {_confidence(response)}".rstrip())
    else:
        bound = "at least " if response.total.relation == "gte" else ""
        counts = Counter(hit.collection for hit in response.hits).most_common(_MAX_NAMES)
        shown = ", ".join(f"{one_line(name, _NAME_CHARS)} ({count})" for name, count in counts)
        lines = [
            f"Found {bound}{response.total.value}, {len(response.hits)} on this page, in collections: {shown}.",
            f"Searched: {', '.join(response.route.sources)}. {_confidence(response)}".rstrip(),
        ]
    if response.degraded:
        failed = "; ".join(f"{each.source}: {each.reason}" for each in response.degraded[:_MAX_NAMES])
        lines.append(f"Degraded, so hits may be missing: {one_line(failed, _MAX_NAMES * _REASON_CHARS)}.")
    return "\n".join(lines)


def _confidence(response: SearchResponse) -> str:
    return "" if response.confidence is None else f"Confidence that they answer the query: {response.confidence:.2f}."


def block(position: int, hit: SearchHit, has_neighbors: bool) -> str:
    """One hit: what it is, why it was found, the words around those of the query, and its evidence."""
    kind = "artifact" if hit.parent_id is None else "chunk"
    lines = [f"{position}. [{kind}] id: {exact(hit.id)}"]
    if title := one_line(hit.title, _TITLE_CHARS):
        lines.append(f"title: {title}")
    sources = ", ".join(source for source, found in hit.sources.items() if found is not None)
    facts = [f"score {hit.score:.3f} from {sources}", f"collection {exact(hit.collection)}", hit.sensitivity]
    facts += unless_shared(hit.visibility)
    if hit.created_at is not None:
        facts.append(hit.created_at.date().isoformat())
    lines.append("; ".join(facts))
    if has_neighbors:
        passage = one_line(hit.text, _NEIGHBORS_CHARS)
    else:
        passage = one_line(unescape(_MARK.sub("", hit.snippet or "")), _SNIPPET_CHARS)
    if passage:
        lines.append(f"text: {passage}")
    if hit.url:
        lines.append(f"evidence: {one_line(hit.url, _SNIPPET_CHARS)}")
    return "\n".join(lines)


def reasons(hit: SearchHit) -> str:
    """How the score of a hit was computed."""
    parts = [
        f"{source} rank {each.rank}, score {each.score:.4f} * weight {each.weight:g} -> {each.contribution:.4f}"
        for source, each in hit.sources.items()
        if each is not None
    ]
    applied = " ".join(f"* {name} {factor:.3f}" for name, factor in hit.boosts.items() if factor != 1.0)
    confidence = "" if hit.confidence is None else f"; confidence {hit.confidence:.2f}"
    return (
        f"why: {'; '.join(parts)}; fusion score {hit.fusion_score:.4f} {applied}".rstrip()
        + f" = {hit.score:.4f}{confidence}"
    )


def explanation(response: SearchResponse) -> Iterator[str]:
    """How the response was computed, a line for each decision."""
    yield f"route: {response.route.reason}"
    if explain := response.explain:
        yield f"profile {explain.profile}, fusion {explain.fusion}, collapse {explain.collapse}"
        weights = ", ".join(f"{name} {weight:g}" for name, weight in explain.weights.items())
        boosts = ", ".join(explain.boosts) or "none"
        yield f"weights: {weights}; boosts: {boosts}; query encoded by: {explain.encoder}"
        found = ", ".join(f"{source} {len(ranking)}" for source, ranking in explain.rankings.items())
        yield f"candidates listed: {found or 'none'}; {explain.depth} requested from each source"
        removed = explain.removed
        yield (
            f"removed: {removed.filter} by filter and collections, {removed.min_score} by min_score, "
            f"{removed.min_confidence} by min_confidence, {len(removed.collapsed)} replaced by a better chunk, "
            f"{removed.deleted} deleted meanwhile, {removed.withheld} withheld by the access check"
        )
    yield "ms: " + ", ".join(f"{stage} {ms:.1f}" for stage, ms in response.timings_ms.items())
