"""Every background task of an opened service, by its effect: each test fails if the task is left out."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import pytest
from msgspec import structs
from redis.asyncio import Redis

from adapters import Scope, Unavailable
from orchestrator.auth.key_admin import add_key, remove_key
from orchestrator.auth.keyring import UnknownKey
from orchestrator.bootstrap import caches, open_service
from orchestrator.bootstrap.first_search import warm_up
from orchestrator.http.app import create_app
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.measurement.calibration import CALIBRATION_FILE
from orchestrator.measurement.graph_trust import TRUST_FILE
from orchestrator.settings import Settings
from tests.conftest import SCOPE
from tests.orchestrator.bootstrap.fake_server import FakeServer, OpenService
from tests.orchestrator.bootstrap.helpers import ALPHA, background, eventually, index, respond, search
from tests.secrets import register_secret
from tests.servers.stub import stub

_WAITS_S = 4.0
"""Maximum time that a start waits for servers: the time that it takes, less the CPU that it uses."""

pytestmark = pytest.mark.anyio


async def test_writes_of_other_processes_are_followed(chosen: Settings) -> None:
    settings = chosen.changed(refresh_interval_ms=10)
    async with open_service(settings) as here, open_service(settings) as elsewhere, background(here):
        await index(elsewhere, [ALPHA])
        await eventually(lambda: here.documents.generation() == 1)
        response = await respond(here, "alpha")
        assert [hit.id for hit in response.hits] == ["a"]


@pytest.mark.parametrize("file", [TRUST_FILE, CALIBRATION_FILE, "static-encoder.bin", "index/centrality.msgpack"])
async def test_every_file_that_another_process_replaces_is_followed(
    chosen: Settings, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file shows that it is read: the error is logged, and what was read before is used."""
    path = chosen.storage.data_dir / file
    async with open_service(chosen.changed(refresh_interval_ms=10)) as service:
        await index(service, [ALPHA])
        with caplog.at_level(logging.ERROR):
            async with background(service):
                path.write_bytes(b"damaged")
                await eventually(lambda: str(path) in caplog.text)
        assert [hit.id for hit in (await search(service, "alpha")).hits] == ["a"]


@pytest.mark.process
async def test_documents_are_measured_again_after_writes(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.bootstrap.background._PAUSE_S", 0.001)
    async with open_service(chosen.changed(upkeep_interval_s=1)) as service, background(service):
        documents = [ALPHA] + [structs.replace(ALPHA, id=f"a{number}") for number in range(60)]
        await index(service, documents)
        await eventually((chosen.storage.data_dir / CALIBRATION_FILE).exists)
        await eventually(lambda: bool(service.maintenance.calibrations.of_scope(service.anonymous.scope, "normal")))


async def test_writes_that_wait_in_the_log_are_applied(opened: OpenService, chosen: Settings) -> None:
    """The process that appended one was killed before it applied it."""
    async with opened(replication_retry_ms=100) as service:
        (record,) = await service.documents.lines.pipeline.prepare([ALPHA], SCOPE)
        log = WriteLog(chosen.storage.data_dir / "write-log", 2**30)
        sequence = log.append(Write.of([record], []), ["embedded"])
        async with background(service):
            await eventually(lambda: log.is_empty() and service.documents.generation() == sequence)
        assert (await service.documents.get("a", service.anonymous)).text == ALPHA.text


async def test_the_key_file_is_followed_even_if_nothing_else_can_be_read(chosen: Settings, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first = register_secret(add_key(path, "first", SCOPE, "normal", admin=False))
    async with open_service(chosen.changed(keys_file=path, refresh_interval_ms=10)) as service, background(service):
        assert service.keyring
        keyring = service.keyring
        (chosen.storage.data_dir / TRUST_FILE).write_bytes(b"damaged")

        def is_known(key: str) -> bool:
            try:
                return bool(keyring.authenticate(f"Bearer {key}"))
            except UnknownKey:
                return False

        second = register_secret(add_key(path, "second", SCOPE, "normal", admin=False))
        await eventually(lambda: is_known(second))
        remove_key(path, "first")
        await eventually(lambda: not is_known(first))


@pytest.fixture
def shared(chosen: Settings, server_url: Callable[[str], str]) -> Settings:
    """With a real Redis, and without following files: only Redis reports a write."""
    return chosen.changed(
        cache=server_url("redis"),
        cache_timeout_ms=2_000,
        index_name=f"test-{uuid.uuid4().hex}",
        refresh_interval_ms=60_000,
    )


@pytest.mark.server
async def test_a_write_increments_the_counter_of_its_scope(shared: Settings) -> None:
    async with open_service(shared) as service, Redis.from_url(shared.cache.url) as redis:
        names = f"trivium:{shared.storage.index_name}:written:*"
        assert await redis.keys(names) == []
        await index(service, [ALPHA])
        (first,) = await redis.keys(names)
        await index(service, [ALPHA], Scope("other"))
        assert len(await redis.keys(names)) == 2
        before = int(await redis.get(first))
        await service.documents.delete("a", service.anonymous)
        assert int(await redis.get(first)) > before


@pytest.mark.server
async def test_the_counters_of_other_processes_are_received(shared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_POLL_S", 0.05)
    async with open_service(shared) as here, open_service(shared) as elsewhere, background(here):
        assert [(await respond(here, "star")).cache for _ in range(2)] == ["miss", "l1"]
        version = here.search.data_versions.current(SCOPE)
        await index(elsewhere, [ALPHA])
        await eventually(lambda: here.search.data_versions.current(SCOPE) != version)
        assert (await respond(here, "star")).cache == "miss"


async def test_every_source_is_searched_before_the_first_request(chosen: Settings) -> None:
    app = create_app(chosen)
    async with app.router.lifespan_context(app):
        report = app.state.service.cache_report()
        assert report.levels["collections"].misses


async def test_warming_up_does_not_fail_with_a_source_that_is_away(
    opened: OpenService, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.failures = [Unavailable("away")] * 10
    with caplog.at_level(logging.WARNING):
        async with opened() as service:
            await warm_up(service)
    assert "warming up mode keyword: " in caplog.text


async def test_the_service_starts_soon_with_servers_that_accept_connections_and_never_answer(
    chosen: Settings,
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with stub(silent) as port:
        servers = chosen.changed(
            vector=f"qdrant+http://127.0.0.1:{port}",
            graph=f"bolt://127.0.0.1:{port}",
            keyword=f"opensearch+http://127.0.0.1:{port}",
            cache=f"redis://127.0.0.1:{port}/0",
        )
        app = create_app(servers)
        start = perf_counter() - process_time()
        async with app.router.lifespan_context(app):
            assert perf_counter() - process_time() - start < _WAITS_S
