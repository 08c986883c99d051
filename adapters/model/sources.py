"""The descriptions of the three sources. ``docs/architecture.md`` says what a fourth one needs."""

from __future__ import annotations

from fusion.source import Source

VECTOR = Source(
    "vector",
    needs=frozenset({"query_vector"}),
    exponent=1.5,
    comparable_scores=True,
    evidence=1.0,
    usual_evidence=0.35,
    fallback_priority=2,
)
GRAPH = Source(
    "graph",
    role="graph",
    stage=2,
    per_collection=False,
    exponent=0.5,
    evidence=0.3,
    fallback_priority=3,
    scaled_by_trust=True,
)
KEYWORD = Source(
    "keyword",
    needs=frozenset({"expansions"}),
    exponent=2.0,
    evidence=0.06,
    usual_evidence=0.06,
    tie_priority=1,
    # First, because its errors are the easiest to understand.
    fallback_priority=1,
    exact_phrases=True,
    identifier_boost=True,
)

SOURCES = (VECTOR, GRAPH, KEYWORD)
"""All sources, in the order in which responses list them."""
