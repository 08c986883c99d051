"""Every setting either changes no response, or changes the cache key of the responses that it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from adapters import Scope
from adapters.model.sources import SOURCES
from orchestrator.auth.principal import Principal
from orchestrator.bootstrap.caches import content_ids
from orchestrator.planning.interleaving import with_other_plan
from orchestrator.planning.plan import Plan
from orchestrator.planning.plan_key import cache_key, plan_hash
from orchestrator.planning.planner import make_plan
from orchestrator.schema.search import SearchRequest
from orchestrator.settings.groups import Settings, setting_fields

PRINCIPAL = Principal("test", Scope("t", "e"), "normal")
REQUEST = SearchRequest(query="alpha centauri", limit=50, mode="hybrid", boosts={"centrality": True, "recency": True})

DECIDES: dict[str, object] = {
    "vector": "qdrant+grpc://host:6334",
    "graph": "bolt://host:7687",
    "keyword": "opensearch+https://host:9200",
    "candidates_per_source": 1_000,
    "query_encoder": "static",
    "query_expansion": "python://package.module:function",
    "fusion": "rrf(k=10)",
    "weights": {"graph": 2.0},
    "boosts": "importance=0.5",
    "recency_half_life_days": 7,
    "link_strengths": {"cites": (1.0, 0.5)},
    "centrality": "degree",
    "centrality_weight": 0.3,
    "window_radius": 3,
    "reranker": "rerank+http://127.0.0.1/v1/rerank",
    "reranker_model": "other",
    "rerank_top": 7,
    "default_collections": ("notes",),
    "profile": "rrf",
    "collapse": "none",
    "hops": 3,
    "min_confidence": 0.5,
    "default_limit": 7,
    "rerank": False,
    "interleave": "rrf:1",
}
"""Settings that decide responses, each with another value than :func:`settings_with` has."""

DECIDES_NOTHING: dict[str, object] = {
    "replication_factor": 8, "opensearch_shards": 7, "qdrant_shards": 7, "qdrant_on_disk": True,
    "qdrant_quantization": "int8", "qdrant_write_consistency": 7,
    "data_dir": "/other", "model_dir": "/other", "index_name": "other", "strict_index": True, "qdrant_api_key": "other",
    "source_timeout_ms": 7, "request_timeout_ms": 7, "upkeep_interval_s": 7,
    "max_limit": 70, "circuit_reset_ms": 7, "retry_budget_ratio": 0.7, "embedder": "none://3",
    "embedding_text": "title",
    "entity_extractor": "python://package.module:function", "reranker_api_key": "other", "rerank_timeout_ms": 7,
    "write_log_max_bytes": 2_000_000, "replication_retry_ms": 700, "refresh_interval_ms": 70,
    "cache": "redis://host:6379/0", "cache_bytes": 70_000, "cache_ttl_s": 7.0, "cache_stale_while_revalidate_s": 7.0,
    "cache_timeout_ms": 7, "keys_file": "/other", "mcp_hosts": "other",
    "open_clearance": "public", "tenant": "other",
    "environment": "other", "user": "other", "teams": ("other",),
    "search_concurrency": 7, "client_timeout_ms": 700, "shutdown_grace_ms": 7,
    "log_level": "error", "console": False, "shadow": "rrf:0.1",
    "feedback": "texts", "feedback_max_bytes": 2_000_000,
}  # fmt: skip
"""The others. Tenant, environment and clearance are those of the principal, and so in the key; the build of the index
and the files of this machine are in it, too, by what they are and not by what they are called."""


def settings_with(**values: object) -> Settings:
    base = {"reranker": "chat+http://127.0.0.1/v1", "centrality_weight": 0.1, "rerank": True, "replication_factor": 7}
    return Settings.of(**base | values)


def key(settings: Settings, request: SearchRequest = REQUEST) -> bytes:
    def make(request: SearchRequest) -> Plan:
        return make_plan(request, PRINCIPAL, settings, SOURCES, 1.0, 20_000, dimension=2)

    plan = make(request)
    if settings.requests.interleaved:
        plan = with_other_plan(request, plan, settings.requests.interleaved, make)
    return cache_key(plan_hash(plan), ("v", 1), "build", content_ids(settings))


def test_every_setting_is_in_one_of_the_two_lists() -> None:
    assert not DECIDES.keys() & DECIDES_NOTHING.keys()
    assert DECIDES.keys() | DECIDES_NOTHING.keys() == setting_fields().keys()


@pytest.mark.parametrize("name", DECIDES)
def test_a_setting_that_decides_responses_changes_the_key(name: str) -> None:
    changes: dict[str, dict[str, Any]] = {"hops": {"mode": "graph"}, "default_limit": {"limit": None}}
    request = structs.replace(REQUEST, **changes.get(name, {}))
    others = {"rerank": False} if name == "interleave" else {}  # what is reranked is not mixed
    assert key(settings_with(**others, **{name: DECIDES[name]}), request) != key(settings_with(**others), request)


@pytest.mark.parametrize("name", DECIDES_NOTHING)
def test_any_other_setting_leaves_the_key_as_it_is(name: str) -> None:
    assert key(settings_with(**{name: DECIDES_NOTHING[name]})) == key(settings_with())


def test_another_synonym_in_the_same_file_changes_the_key(tmp_path: Path) -> None:
    file = tmp_path / "synonyms.txt"
    keys = set()
    for text in ("a, b", "a, c"):
        file.write_text(text)
        keys.add(key(settings_with(query_expansion=f"synonyms://{file}")))
    assert len(keys) == 2


def test_the_credentials_of_a_server_are_in_no_key() -> None:
    plain = settings_with(keyword="opensearch+https://host:9200")
    with_password = settings_with(keyword="opensearch+https://user:password@host:9200")
    assert key(plain) == key(with_password)
    assert not any("password" in each for each in content_ids(with_password))
