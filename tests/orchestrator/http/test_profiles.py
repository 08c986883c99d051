"""Profiles by effort, as callers see them."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import complete_response, hit_ids, serving

pytestmark = pytest.mark.anyio

QUERY = {"query": "films by Christopher Nolan", "mode": "hybrid", "explain": True}


def shortest_first(query: str, texts: list[str]) -> list[float]:
    """A reranker."""
    del query
    return [-float(len(text)) for text in texts]


async def check(settings: Settings) -> None:
    reranked = settings.changed(reranker=f"python://{__name__}:{shortest_first.__name__}")
    async with serving(reranked) as (_, client):
        found = {
            profile: await complete_response(client, **QUERY, profile=profile)
            for profile in ("joint", "fast", "quality")
        }
        named = await complete_response(client, **QUERY, profile="quality", rerank=False)
    searched = {profile: set(response["explain"]["rankings"]) for profile, response in found.items()}
    assert searched["joint"] == searched["quality"] == searched["fast"] | {"graph"} == {"vector", "graph", "keyword"}
    assert all(hit["sources"]["graph"] is None for hit in found["fast"]["hits"])
    assert any(hit["sources"]["graph"] for hit in found["joint"]["hits"])
    assert all(hit["rerank"] for hit in found["quality"]["hits"])
    lengths = [len(hit["text"]) for hit in found["quality"]["hits"]]
    assert lengths == sorted(lengths)
    assert not any("rerank" in hit for profile in ("joint", "fast") for hit in found[profile]["hits"])
    assert hit_ids(named) == hit_ids(found["joint"]) != hit_ids(found["quality"])


async def test_fast_has_no_graph_and_quality_is_reranked(chosen: Settings) -> None:
    await check(chosen)


@pytest.mark.server
async def test_fast_has_no_graph_and_quality_is_reranked_on_servers(
    chosen: Settings, server_url: Callable[[str], str]
) -> None:
    on_servers = {"keyword": server_url("opensearch"), "graph": server_url("bolt")}
    name = f"test-{uuid.uuid4().hex}"
    await check(chosen.changed(index_name=name, source_timeout_ms=20_000, **on_servers))
