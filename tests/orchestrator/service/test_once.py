"""What is decided once for a request is not decided again by a later stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from adapters import Document
from adapters.model.filter import Eq
from orchestrator.bootstrap import open_service
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.ndjson import ValidLine
from orchestrator.indexing.snapshots import IndexSnapshots
from orchestrator.measurement.graph_trust import GraphTrust
from orchestrator.planning import filters, planner
from orchestrator.schema.search import SearchRequest
from orchestrator.service import plan_cache
from orchestrator.service import search as search_module
from orchestrator.service.service import Service
from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio

EVERY_STAGE = SearchRequest(
    query="Alpha Centauri",
    mode="hybrid",
    collections=("documents", "notes"),
    filter=Eq("language", "en"),
    boosts={"centrality": True, "relationship": True},
    neighbors=1,
    rerank=True,
    explain=True,
    timeout_ms=60_000,
)
"""A request that every stage has something to do for: two collections, all boosts, neighbours, an explanation."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of calls of each function."""
    counter: Counter[str] = Counter()

    def count(owner: object, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            counter[name] += 1
            return function(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    count(search_module, "make_plan")
    count(plan_cache, "plan_hash")
    count(search_module, "cache_key")
    count(planner, "request_filters")
    count(filters, "check")
    count(GraphTrust, "weight_factor")
    count(DataVersions, "ensure_loaded")
    count(DataVersions, "current")
    count(IndexSnapshots, "pin")
    return counter


@pytest.fixture
async def service(chosen: Settings, calls: Counter[str]) -> AsyncIterator[Service]:
    async with open_service(chosen) as service:
        documents = [
            Document(id=f"{collection}-{n}", collection=collection, text=f"Alpha Centauri {n}", language="en",
                     parent_id=f"{collection}-parent", chunk_index=n)
            for collection in ("documents", "notes")
            for n in range(3)
        ]  # fmt: skip
        lines = [ValidLine(number, document) for number, document in enumerate(documents, start=1)]
        await service.documents.index(lines, service.anonymous, on_invalid=lambda line: pytest.fail(line.error))
        await service.maintenance.optimize(lambda _: None)
        calls.clear()
        yield service


ONCE = {
    "make_plan": 1,
    "plan_hash": 1,
    "cache_key": 1,
    "request_filters": 1,
    "check": 1,
    "weight_factor": 1,
    "ensure_loaded": 1,
    "current": 1,
    "pin": 1,
}
HIT = {"cache_key": 1, "weight_factor": 1, "ensure_loaded": 1, "current": 1, "pin": 1}
"""A cached plan is not made again: only what may have changed since is read."""


async def test_a_computed_response_decides_everything_once(service: Service, calls: Counter[str]) -> None:
    response = await service.search.respond(EVERY_STAGE, service.anonymous, "r")
    assert response.cache == "miss"
    assert response.computed
    assert len(response.computed.hits) == 2
    stages = {"plan", "gather", "vector", "graph", "keyword", "fuse", "boost", "collapse", "hydrate", "neighbors"}
    assert stages <= set(response.timings_ms)
    assert calls == ONCE


async def test_a_cache_hit_decides_no_more_than_that(service: Service, calls: Counter[str]) -> None:
    # Without a reranker the first response is degraded, and is cached for a second only.
    await service.search.respond(EVERY_STAGE, service.anonymous, "r")
    calls.clear()
    response = await service.search.respond(EVERY_STAGE, service.anonymous, "r")
    assert response.cache == "l1"
    assert calls == HIT


async def test_a_new_page_of_the_same_request_makes_one_new_plan(service: Service, calls: Counter[str]) -> None:
    """The sources' rankings are memoized; nothing but the page is decided again."""
    request = SearchRequest(query="Alpha Centauri", limit=1, collapse="none", timeout_ms=60_000)
    first = await service.search.respond(request, service.anonymous, "r")
    assert first.computed
    assert first.computed.next_cursor
    calls.clear()
    next_page = SearchRequest(
        query="Alpha Centauri", limit=1, collapse="none", timeout_ms=60_000, cursor=first.computed.next_cursor
    )
    second = await service.search.respond(next_page, service.anonymous, "r")
    assert second.computed
    assert second.computed.hits[0].id != first.computed.hits[0].id
    assert calls == {name: count for name, count in ONCE.items() if name != "check"}
