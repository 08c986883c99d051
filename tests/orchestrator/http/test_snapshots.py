"""The whole response of each mode, compared with a snapshot: ``pytest --snapshot-update`` writes the present one.

Real model, real engines, embedded; the reranker is a function of this file, and the day is fixed. Values that differ
between runs (times, ids) are left out; floats have three digits, because the last ones depend on the processor.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import jsonschema
import pytest
from fastapi import FastAPI
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from docs.response_schema import PATH, schema
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import index_documents

pytestmark = pytest.mark.anyio

TEXTS = [
    "Christopher Nolan is a director of films, born in London.",
    "The Prestige is a film by Christopher Nolan about two magicians.",
    "Insomnia is a film by Christopher Nolan, set in Alaska.",
]
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "nolan", "title": "Christopher Nolan", "text": TEXTS[0], "importance": 8, "tags": ["person"]},
    {
        "id": "prestige",
        "title": "The Prestige",
        "text": TEXTS[1],
        "created_at": "2025-12-02T00:00:00Z",
        "links": [{"target": "nolan", "type": "by"}],
    },
    {"id": "films", "title": "Films", "text": " ".join(TEXTS), "url": "https://example.org/films"},
    *(
        {"id": f"films-{n}", "text": text, "parent_id": "films", "chunk_index": n, "created_at": "2025-12-20T00:00:00Z"}
        for n, text in enumerate(TEXTS)
    ),
    {"id": "pasta", "title": "Pasta", "text": "Boil water, add salt.", "metadata": {"minutes": 9}},
    {"id": "secret", "text": "Christopher Nolan's secret", "sensitivity": "restricted"},
]
REQUESTS: dict[str, dict[str, Any]] = {
    "auto": {"mode": "auto"},
    "hybrid": {"mode": "hybrid"},
    "vector": {"mode": "vector"},
    "graph": {"mode": "graph"},
    "keyword": {"mode": "keyword"},
    "everything": {
        "mode": "hybrid",
        "fusion": "rrf(k=60)",
        "collapse": "window",
        "neighbors": 1,
        "limit": 3,
        "collections": ["documents", "memory"],
        "filter": {"op": "not", "filter": {"op": "exists", "field": "metadata.minutes"}},
        "boosts": {"centrality": True, "importance": True, "recency": True, "relationship": True},
        "explain": True,
        "rerank": True,
    },
    "rrf": {"mode": "hybrid", "profile": "rrf", "limit": 4},
    "weighted_rrf": {"mode": "hybrid", "profile": "weighted_rrf", "limit": 4},
}
TODAY = datetime(2026, 1, 1, tzinfo=UTC)


def shortest_first(query: str, texts: Sequence[str]) -> list[float]:
    """The reranker: shorter texts are better."""
    return [-len(text) for text in texts]


@pytest.fixture
def chosen(chosen: Settings) -> Settings:
    return chosen.changed(reranker=f"python://{__name__}:{shortest_first.__name__}")


@pytest.fixture
async def filled(app: FastAPI, client: httpx.AsyncClient) -> httpx.AsyncClient:
    await index_documents(app, DOCUMENTS)
    service = app.state.service
    await service.maintenance.optimize(lambda _: None)  # it computes centralities
    service.search.now = TODAY.timestamp
    return client


async def test_every_boost_has_a_factor_other_than_1_and_a_hit_is_reranked(filled: httpx.AsyncClient) -> None:
    """Otherwise the snapshots would not notice a boost that is lost."""
    body = {"query": "films by Christopher Nolan", "timeout_ms": 20_000, **REQUESTS["everything"]}
    hits = (await filled.post("/v1/search", json=body)).json()["hits"]
    for boost in ("centrality", "importance", "recency", "relationship"):
        assert any(hit["boosts"][boost] != 1 for hit in hits), boost
    assert [hit["rerank"]["rank"] for hit in hits] == [1, 2, 3]


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_answer_is_what_it_was_and_what_the_schema_says(
    filled: httpx.AsyncClient, name: str, snapshot: SnapshotAssertion
) -> None:
    body = {"query": "films by Christopher Nolan", "timeout_ms": 20_000, **REQUESTS[name]}
    response = (await filled.post("/v1/search", json=body)).json()
    jsonschema.Draft202012Validator(schema()).validate(response)
    assert _without_varying(response) == snapshot(extension_class=JSONSnapshotExtension)


def test_the_published_schema_is_the_schema_of_responses() -> None:
    """``python -m docs.response_schema`` writes it."""
    assert json.loads(PATH.read_text("utf-8")) == schema()


def _without_varying(value: Any, key: str = "") -> Any:
    """The value without anything that may differ between two runs."""
    if isinstance(value, dict):
        varying = {"took_ms", "after_ms", "request_id", "query_id", "index_version", "embedding_model", "next_cursor"}
        if key == "timings_ms":
            return sorted(value)
        return {
            name: "..." if name in varying and each is not None else _without_varying(each, name)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_without_varying(each) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value
