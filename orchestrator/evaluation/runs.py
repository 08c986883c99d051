"""The runs of an evaluation: requests that differ in one thing each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from adapters.model.sources import SOURCES
from orchestrator.schema.search import SearchRequest

DEPTH = 100
"""Hits of a run, for recall at 100."""

SHOWN_HITS = 5
"""Hits of the reference run that a report shows of a query."""

REFERENCE_RUN = "hybrid"
"""The run that all others are compared with."""

_TIMEOUT_MS = 60_000

_NAMES = tuple(source.name for source in SOURCES)
TEXT_SOURCES = tuple(source.name for source in SOURCES if source.role == "text")
"""The sources that search text; the baseline of the graph."""


class RunPlan(NamedTuple):
    """How a run searches.

    :param description: one line for reports.
    :param fields: of each request, besides the query.
    :param settings: that the run changes because a request cannot set them.
    """

    description: str
    fields: Mapping[str, object]
    settings: Mapping[str, object] = {}


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

TEXT_RUN = next(iter(_PAIRS))
"""The run of both text sources, without the graph."""


def _boosted(*boosts: str) -> dict[str, object]:
    return {"mode": "hybrid", "boosts": dict.fromkeys(boosts, True)}


RUNS: Mapping[str, RunPlan] = {
    **{name: RunPlan(f"{name} alone", {"mode": name}) for name in _NAMES},
    **{run: RunPlan(f"{' and '.join(pair)}, nothing else", _only(pair, _NAMES)) for run, pair in _PAIRS.items()},
    REFERENCE_RUN: RunPlan("every source, as the settings are", {"mode": "hybrid"}),
    "hybrid/rrf": RunPlan("hybrid, fused by rrf(k=60)", {"mode": "hybrid", "fusion": "rrf(k=60)"}),
    "profile/rrf": RunPlan(
        "hybrid, profile rrf: all sources at once, boosted by centrality", {"mode": "hybrid", "profile": "rrf"}
    ),
    "profile/weighted_rrf": RunPlan(
        "hybrid, profile weighted_rrf: all sources at once, measured weights",
        {"mode": "hybrid", "profile": "weighted_rrf"},
    ),
    "hybrid/centrality": RunPlan("hybrid, boosted by centrality in the graph", _boosted("centrality")),
    "hybrid/dates": RunPlan(
        "hybrid, boosted by date and importance; equal to hybrid if no document has them, or all are old",
        _boosted("recency", "importance"),
    ),
    "hybrid/relationship": RunPlan("hybrid, boosted by links to names in the query", _boosted("relationship")),
    "hybrid/model": RunPlan("hybrid, queries encoded by the model", {"mode": "hybrid"}, {"query_encoder": "model"}),
    "hybrid/static": RunPlan(
        "hybrid, queries encoded by the static encoder", {"mode": "hybrid"}, {"query_encoder": "static"}
    ),
    "auto": RunPlan("mode auto: the query decides which sources are searched", {"mode": "auto"}),
}
"""The runs by name."""

RUNS_OF_ANY_INDEX = tuple(name for name, plan in RUNS.items() if not plan.settings)
"""The runs for which an index needs nothing beside the documents."""


def run_fields(run: str, sources: Iterable[str]) -> Mapping[str, object]:
    """The fields of a run of a service.

    :param sources: of the service; it may have more than :data:`RUNS` names.
    """
    return _only(_PAIRS[run], sources) if run in _PAIRS else RUNS[run].fields


def make_request(query: str, fields: Mapping[str, object]) -> SearchRequest:
    """The request of one query of a run, deeper and with more time than the API allows."""
    return SearchRequest(**{"query": query, "limit": DEPTH, "timeout_ms": _TIMEOUT_MS, "highlight": False, **fields})  # type: ignore[arg-type]
