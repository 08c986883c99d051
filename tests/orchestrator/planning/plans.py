"""Plans of requests."""

from __future__ import annotations

from adapters import Scope
from adapters.model.sources import SOURCES
from orchestrator.auth.principal import Principal
from orchestrator.planning.plan import Plan, RankingPlan
from orchestrator.planning.planner import make_plan
from orchestrator.schema.search import SearchRequest
from orchestrator.settings import Settings

TODAY = 20_000
PRINCIPAL = Principal("test", Scope("t", "e"), "normal")


def planned(settings: Settings | None = None, trust: float = 1.0, **fields: object) -> Plan:
    request = SearchRequest(**{"query": "words", **fields})  # type: ignore[arg-type]
    return make_plan(request, PRINCIPAL, settings or Settings(), SOURCES, trust, TODAY, dimension=2)


def ranking(settings: Settings | None = None, trust: float = 1.0, **fields: object) -> RankingPlan:
    return planned(settings, trust, **fields).ranking
