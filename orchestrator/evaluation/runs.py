"""The runs of an evaluation: requests that differ in one thing each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from adapters.model.sources import SOURCES
from orchestrator.schema.search import SearchRequest

DEPTH = 100
"""Hits of a run, for recall at 100."""

REFERENCE_RUN = "hybrid"
"""The run that all others are compared with."""

_TIMEOUT_MS = 60_000

_NAMES = tuple(source.name for source in SOURCES)
TEXT_SOURCES = tuple(source.name for source in SOURCES if source.role == "text")
"""The sources that search text; the baseline of the graph."""


def _pairs() -> dict[str, tuple[str, str]]:
    """The pairs of sources, by the name of their run. Pairs of text sources come first."""
    pairs = sorted(combinations(_NAMES, 2), key=lambda pair: not set(pair) <= set(TEXT_SOURCES))
    return {"+".join(_in_run_name_order(pair)): pair for pair in pairs}


def _in_run_name_order(pair: tuple[str, str]) -> list[str]:
    return sorted(pair, key=lambda name: name not in TEXT_SOURCES)


def _only(pair: tuple[str, str], sources: Iterable[str]) -> dict[str, object]:
    """A request to two sources: the weight of every other one is 0."""
    return {"mode": "hybrid", "weights": {name: 0.0 for name in sources if name not in pair}}


_PAIRS = _pairs()

RUNS: Mapping[str, Mapping[str, object]] = {
    **{name: {"mode": name} for name in _NAMES},
    **{run: _only(pair, _NAMES) for run, pair in _PAIRS.items()},
    "hybrid": {"mode": "hybrid"},
    "hybrid/rrf": {"mode": "hybrid", "fusion": "rrf(k=60)"},
    "profile/rrf": {"mode": "hybrid", "profile": "rrf"},
    "hybrid/centrality": {"mode": "hybrid", "boosts": {"centrality": True}},
    "hybrid/dates": {"mode": "hybrid", "boosts": {"recency": True, "importance": True}},
    "hybrid/relationship": {"mode": "hybrid", "boosts": {"relationship": True}},
    "hybrid/model": {"mode": "hybrid"},
    "hybrid/static": {"mode": "hybrid"},
    "auto": {"mode": "auto"},
}
"""The fields of each request besides the query, by the name of the run.

The boosts of the graph have runs of their own; those by date and importance have one together, which changes nothing if
no document has either. ``hybrid/model`` and ``hybrid/static`` differ in :data:`RUN_SETTINGS`.
"""

RUN_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "hybrid/model": {"query_encoder": "model"},
    "hybrid/static": {"query_encoder": "static"},
}
"""Settings that a run changes because a request cannot set them, by the name of the run."""


def run_fields(run: str, sources: Iterable[str]) -> Mapping[str, object]:
    """The fields of a run of a service.

    :param sources: of the service; it may have more than :data:`RUNS` names.
    """
    return _only(_PAIRS[run], sources) if run in _PAIRS else RUNS[run]


def make_request(query: str, fields: Mapping[str, object]) -> SearchRequest:
    """The request of one query of a run, deeper and with more time than the API allows."""
    return SearchRequest(**{"query": query, "limit": DEPTH, "timeout_ms": _TIMEOUT_MS, "highlight": False, **fields})  # type: ignore[arg-type]
