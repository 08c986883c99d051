"""What the assembly connects with what, with sources embedded and on servers. No server is contacted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cache.redis
from adapters import Scope, Unavailable, VersionMismatch
from adapters import embedded as embedded_module
from adapters.encoders.static_encoder_file import StaticEncoderFile
from adapters.servers.server import Limits
from adapters.vector import qdrant_connection
from cache import CachePolicy
from orchestrator.bootstrap import embedded as bootstrap_module
from orchestrator.bootstrap import open_service, replicas
from orchestrator.bootstrap.caches import Caches, is_open
from orchestrator.bootstrap.sources import WRITE_TIMEOUT_S
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.planner import MAX_QUERY_CHARS
from orchestrator.retrieval.circuit_breakers import BLAMED_TIMEOUT, MAX_FAILURES
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.conftest import SCOPE
from tests.orchestrator.bootstrap.helpers import ALPHA, BETA, index, search
from tests.orchestrator.bootstrap.test_sources import ON_SERVERS

pytestmark = pytest.mark.anyio

"""The module; its package exports the function of the same name."""


def source_call(service: Service, source: str) -> Any:
    return service.search.retrieval.calls[source]


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_a_service_of_servers_alone_keeps_no_state_of_an_index(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[tuple[object, ...]] = []
    connect = qdrant_connection.connect
    monkeypatch.setattr(
        qdrant_connection, "connect", lambda *arguments: connected.append(arguments) or connect(*arguments)
    )
    strengths = {"cites": (0.5, 0.0)}
    others = {"index_name": "named", "qdrant_api_key": "secret", "link_strengths": strengths, "source_timeout_ms": 700}
    settings = chosen.changed(**ON_SERVERS, **others)
    async with open_service(settings, prepare=False) as service:
        adapters = service.health.servers
        snapshots = service.search.snapshots
        snapshot = snapshots.pin(SCOPE)
        assert (snapshot.view, snapshot.documents) == (None, adapters["keyword"])
        assert snapshots._has_servers
        assert service.health.embedded is None
        assert service.health.replication is service.maintenance.replication is not None
        assert service.maintenance.graph_maintenance is service.health.link_strengths is adapters["graph"]
        assert service.search.centralities.reader is adapters["graph"]
        entities = {name: source_call(service, name).entities for name in adapters}
        assert entities == {"vector": None, "keyword": None, "graph": adapters["graph"]}
        assert all(source_call(service, name).waits for name in adapters)
        limits = Limits(read_timeout_s=0.7, write_timeout_s=WRITE_TIMEOUT_S, max_connections=32)
        assert [adapters["vector"]._limits, adapters["keyword"]._limits, adapters["graph"]._bolt._limits] == [
            limits
        ] * 3
        assert [(key, each) for _, key, each in connected] == [("secret", limits)]
        assert {each._name for each in adapters.values()} == {"named"}
        assert adapters["graph"]._chosen == strengths
        assert adapters["vector"]._dimension == 384
        assert adapters["graph"]._build_id == service.search.build_id() == service.health.replication.build_id


async def test_an_embedded_service_reads_everything_from_one_state_of_its_index(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA, BETA])
        engine = service.health.embedded
        snapshots = service.search.snapshots
        snapshot = snapshots.pin(SCOPE)
        assert snapshot.view is snapshot.documents is engine.index.current()
        assert not snapshots._has_servers
        assert service.health.replication is service.maintenance.replication is None
        assert service.search.build_id() == engine.index.build_id
        graph = source_call(service, "graph").entities
        assert graph is engine.centralities is service.search.centralities.reader
        assert [source_call(service, name).entities for name in ("vector", "keyword")] == [None, None]
        assert not any(source_call(service, name).waits for name in ("vector", "keyword", "graph"))
        assert service.documents.is_current()
        assert not service.documents.lines.writer._writer._writer._has_unapplied()


async def test_a_service_has_the_scope_and_the_limits_of_its_settings(chosen: Settings) -> None:
    settings = chosen.changed(
        tenant="t", environment="e", circuit_reset_ms=7_000, source_timeout_ms=700, upkeep_interval_s=60
    )
    async with open_service(settings) as service:
        assert service.settings is settings
        assert service.health.anonymous_scope == service.anonymous.scope == Scope("t", "e")
        assert service.health.encoder == f"{service.search.embedding_model}, 384 numbers"
        assert service.upkeep.state == "idle"
        breakers = service.search.retrieval.breakers
        assert breakers._blamed_ms == 700 * BLAMED_TIMEOUT
        breaker = breakers._new()
        assert (breaker._max_failures, breaker._reset_s) == (MAX_FAILURES, 7.0)
        assert service.search.calibrations == service.maintenance.calibrations.calibrations
        engine: Any = service.health.embedded
        encoder = service.search.retrieval.preparation.encoders
        assert service.maintenance.centrality == settings.ranking.centrality
        assert service.maintenance.trust_measurement.vectors is source_call(service, "vector").retriever
        assert engine._static_encoder._space == encoder._model.identity == service.search.embedding_model
        assert engine._static_encoder._word_pieces._tokenizer is encoder._model.tokens.tokenizer


async def test_a_strict_service_refuses_an_index_of_another_build(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA])
    with pytest.raises(VersionMismatch):
        async with open_service(chosen.changed(entity_extractor="none://", strict_index=True)):
            pass


async def test_responses_have_the_build_of_the_index_that_was_searched(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA])
        build_id = service.search.build_id()
    async with open_service(chosen.changed(entity_extractor="none://")) as service:
        assert service.search.build_id() == build_id
        assert "rules://2" in build_id


@pytest.mark.parametrize("source", ["vector", "keyword", "graph"])
async def test_a_source_on_a_server_is_not_in_the_embedded_index(chosen: Settings, source: str) -> None:
    url = "redis://127.0.0.1:9"
    async with open_service(chosen.changed(**{source: ON_SERVERS[source], "cache": url}), prepare=False) as service:
        engine: Any = service.health.embedded
        others = [name for name in ("vector", "keyword", "graph") if name != source]
        assert [source.name for source, _, _ in engine.retrievers()] == others
        assert service.search.data_versions._local == [engine.index, service.maintenance.replication]
    on_servers = chosen.changed(**ON_SERVERS, cache=url, data_dir=chosen.storage.data_dir / "other")
    async with open_service(on_servers, prepare=False) as service:
        assert not service.search.data_versions._local


async def test_memos_without_a_snapshot_know_the_version_of_the_data(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA])
        current = service.search.data_versions.current(SCOPE)
        assert service.search.centralities.data_version(SCOPE) == current
    async with open_service(chosen.changed(**ON_SERVERS), prepare=False) as service:
        current = service.search.data_versions.current(SCOPE)
        assert source_call(service, "vector").retriever.data_version(SCOPE) == current


async def test_with_one_source_on_a_server_the_build_names_it_and_the_rest_is_embedded(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "WRITE_TIMEOUT_S", 7.0)
    settings = chosen.changed(graph=ON_SERVERS["graph"])
    async with open_service(settings, prepare=False) as service:
        engine, replication = service.health.embedded, service.maintenance.replication
        assert engine._graph is engine.centralities is engine.link_strengths is None
        assert [source.name for source, _, _ in engine.retrievers()] == ["vector", "keyword"]
        assert service.search.build_id() == replication.build_id
        assert re.search(r"\+bolt-\d+$", replication.build_id)
        assert engine.index.build_id in replication.build_id
        monkeypatch.setattr(replication, "has_unapplied", lambda: True)
        monkeypatch.setattr(replication, "is_current", lambda: False)
        assert service.documents.lines.writer._writer._writer._has_unapplied()
        assert not service.documents.is_current()
        assert {each._slot_timeout_s for each in replication._appliers.values()} == {7.0}
        assert service.search.snapshots._has_servers


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 1),
        ({"reranker": "rerank+http://127.0.0.1:9/v1"}, 64),
        ({"query_expansion": "python://tests.orchestrator.bootstrap.test_connections:no_expansion"}, 64),
        ({"graph": ON_SERVERS["graph"]}, 64),
        ({"search_concurrency": 5, "graph": ON_SERVERS["graph"]}, 5),
    ],
)
async def test_more_searches_run_at_once_if_they_wait_for_something(
    chosen: Settings, settings: dict[str, object], expected: int
) -> None:
    async with open_service(chosen.changed(**settings), prepare=False) as service:
        assert service.search.admission._max_concurrent == expected


def no_expansion(query: str) -> list[str]:
    """For the settings of the test above."""
    return []


async def test_a_reranker_that_is_set_is_used(chosen: Settings) -> None:
    settings = chosen.changed(reranker="rerank+http://127.0.0.1:9/v1", rerank_timeout_ms=600)
    async with open_service(settings, prepare=False) as service:
        assert service.search.rerank.reranker is not None
        assert service.search.rerank.timeout_s == 0.6


async def test_queries_may_be_longer_if_the_caller_of_the_assembly_says_so(chosen: Settings) -> None:
    query = "alpha " * (MAX_QUERY_CHARS // 6 + 1)
    async with open_service(chosen) as service:
        with pytest.raises(BadRequest, match=f"allowed are 1 to {MAX_QUERY_CHARS}"):
            await search(service, query)
    async with open_service(chosen, max_query_chars=2 * MAX_QUERY_CHARS) as service:
        await index(service, [ALPHA])
        assert [hit.id for hit in (await search(service, query)).hits] == ["a"]


@pytest.mark.parametrize(("ttl_s", "degraded_ttl_s"), [(30.0, 1.0), (0.5, 0.5)])
async def test_degraded_responses_are_cached_for_a_second_at_most(
    tmp_path: Path, ttl_s: float, degraded_ttl_s: float
) -> None:
    settings = Settings.of(data_dir=tmp_path, cache_ttl_s=ttl_s, cache_stale_while_revalidate_s=7.0)
    async with AsyncExitStack() as stack:
        responses = Caches(settings, [], False, stack).responses
    assert responses.levels._policy == CachePolicy(ttl_s, 7.0, degraded_ttl_s)


class _Versioned:
    def data_version(self) -> int:
        return 5


@pytest.mark.parametrize(
    ("url", "all_on_servers", "has_local_versions"),
    [
        ("memory://", False, True),
        ("memory://", True, True),
        ("redis://127.0.0.1:9", False, True),
        ("redis://127.0.0.1:9", True, False),
    ],
)
async def test_only_without_files_and_with_counters_the_data_version_is_that_of_the_counters(
    tmp_path: Path, url: str, all_on_servers: bool, has_local_versions: bool
) -> None:
    """Processes on other machines share responses exactly then."""
    async with AsyncExitStack() as stack:
        caches = Caches(Settings.of(data_dir=tmp_path, cache=url), [_Versioned()], all_on_servers, stack)
        version = caches.data_versions.current(SCOPE)
    assert (5 in version) is has_local_versions
    assert bool(version[0]) is has_local_versions


async def test_redis_has_a_client_for_reads_and_one_with_a_longer_time_limit_for_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[tuple[str, float]] = []
    connect = cache.redis.connect
    monkeypatch.setattr(
        cache.redis, "connect", lambda url, limit: connected.append((url, limit)) or connect(url, limit)
    )
    url = "redis://127.0.0.1:9"
    settings = Settings.of(data_dir=tmp_path, cache=url, cache_timeout_ms=40, index_name="name")
    async with AsyncExitStack() as stack:
        caches = Caches(settings, [], True, stack)
        level: Any = caches.responses.levels.l2
        counters: Any = caches.counters
        assert connected == [(url, 0.04), (url, 0.04)]
        assert (level.redis.deadline_s, counters._writes.deadline_s) == (0.04, 0.4)
        assert level.redis is counters._reads
        assert level.redis.client is not counters._writes.client
        assert (level._prefix, counters._prefix) == (b"trivium:name:response:", "trivium:name:written")


async def test_the_client_of_redis_that_is_not_installed_is_named_with_its_extra(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "redis.asyncio", raising=False)
    monkeypatch.delitem(sys.modules, "cache.bounded_redis", raising=False)
    monkeypatch.delitem(sys.modules, "cache.redis", raising=False)
    monkeypatch.delattr(cache, "redis", raising=False)
    async with AsyncExitStack() as stack:
        with pytest.raises(Unavailable, match=re.escape("is not installed: pip install 'trivium[redis]'")):
            Caches(chosen.changed(cache="redis://127.0.0.1:9"), [], True, stack)


async def test_measuring_fits_the_static_encoder_to_the_documents_and_measures_nothing_twice(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[tuple[object, ...]] = []
    saved: list[Path] = []

    def fit(model: object, records: Iterator[Any], progress: object, *, cache: object) -> object:
        fitted.append((model, sorted(each.record.document.id for each in records), cache, progress))
        return SimpleNamespace(save=saved.append)

    monkeypatch.setattr(bootstrap_module, "fit", fit)
    monkeypatch.setattr(embedded_module, "MIN_FIT_DOCUMENTS", 2)
    steps: list[str] = []
    async with open_service(chosen.changed(query_encoder="static")) as service:
        await index(service, [ALPHA, BETA])
        engine: Any = service.maintenance.embedded
        engine.measure(steps.append)
        assert fitted == [
            (service.search.retrieval.preparation.encoders._model, ["a", "b"], chosen.storage.model_dir, steps.append)
        ]
        assert saved == [engine._static_encoder.path] == [chosen.storage.data_dir / "static-encoder.bin"]
        centralities = await engine.centralities.centralities(service.anonymous.scope, ["a", "b"])
        assert sorted(centralities) == ["a", "b"]
        monkeypatch.setattr(embedded_module, "MIN_FIT_DOCUMENTS", 3)
        engine.measure(steps.append)
        monkeypatch.setattr(engine.index, "needs_optimizing", lambda: True)
        engine.merge(steps.append, erase=False)
    assert steps == ["pagerank", "static encoder", "one segment"]


@pytest.mark.parametrize(("encoder", "expected"), [(None, None), (SimpleNamespace(agreement=0.5), 0.5)])
def test_the_agreement_of_the_static_encoder_is_reported(encoder: object, expected: float | None) -> None:
    assert StaticEncoderFile.agreement(SimpleNamespace(encoder=encoder)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("memory://", False),
        ("redis://127.0.0.1:6379/0", False),
        ("redis://localhost", False),
        ("redis://[::1]:6379", False),
        ("redis://cache.internal:6379/0", True),
        ("rediss://user@10.0.0.7", True),
        ("redis://:secret@10.0.0.7", False),
    ],
)
def test_a_cache_on_another_host_needs_a_password(url: str, expected: bool) -> None:
    assert is_open(url) is expected
