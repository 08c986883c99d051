"""What is measured against what: requests that differ in one thing each."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.contract import SearchRequest

DEPTH = 100
"""Hits of a run, for recall at 100."""

_PATIENCE_MS = 60_000

RUNS: Mapping[str, Mapping[str, object]] = {
    "vector": {"mode": "vector"},
    "graph": {"mode": "graph"},
    "keyword": {"mode": "keyword"},
    "vector+keyword": {"mode": "hybrid", "weights": {"graph": 0.0}},
    "vector+graph": {"mode": "hybrid", "weights": {"keyword": 0.0}},
    "keyword+graph": {"mode": "hybrid", "weights": {"vector": 0.0}},
    "hybrid": {"mode": "hybrid"},
    "hybrid/rrf": {"mode": "hybrid", "fusion": "rrf(k=60)"},
    "hybrid/centrality": {"mode": "hybrid", "boosts": {"centrality": True}},
    "hybrid/relationship": {"mode": "hybrid", "boosts": {"relationship": True}},
    "hybrid/ten": {"mode": "hybrid", "limit": 10},
    "auto": {"mode": "auto"},
}
"""By name, what each asks beside the query. The boosts that go by the graph are off unless a request asks, so each is
switched on here; those that go by dates and importance move nothing where no document has any. A request for 100 hits
asks more of the sources than one for ten: ``hybrid/ten`` is what such a one gets."""

SINGLE = ("vector", "graph", "keyword")
TEXT = ("vector", "keyword")
"""The sources that see nothing but the text: what the graph is held against."""


def request(query: str, asked: Mapping[str, object]) -> SearchRequest:
    """A request as the engine takes it, deeper and more patient than the API allows."""
    return SearchRequest(**{"query": query, "limit": DEPTH, "timeout_ms": _PATIENCE_MS, **asked})  # type: ignore[arg-type]
