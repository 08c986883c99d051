"""Two services on one real Redis: each finds the responses of the other, and receives its invalidations."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import Callable
from errno import EROFS
from pathlib import Path
from time import perf_counter
from typing import NoReturn

import pytest

from adapters import Document, Scope
from orchestrator.bootstrap import caches, open_service
from orchestrator.indexing.data_version import DataVersions
from orchestrator.service.service import Service
from orchestrator.settings import Settings, load
from tests.orchestrator.bootstrap.helpers import background, eventually, index, respond
from tests.servers.start import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.server]


@pytest.fixture
def settings(tmp_path: Path, model_dir: Path, server_url: Callable[[str], str]) -> Settings:
    return load(
        data_dir=tmp_path / "data",
        model_dir=model_dir,
        cache=server_url("redis"),
        index_name=f"test-{uuid.uuid4().hex}",
        source_timeout_ms=20_000,
        cache_timeout_ms=500,
    )


async def stored_in_redis(service: Service) -> None:
    """Responses are stored in the background."""
    shared = service.search.cache.levels.l2
    assert shared
    await asyncio.gather(*shared._writes)  # type: ignore[attr-defined]


async def test_a_response_of_one_service_is_found_by_the_other(settings: Settings) -> None:
    async with open_service(settings) as here, open_service(settings) as there:
        await index(here, [Document(id="a", text="alpha beta")])
        there.maintenance.refresh()
        first = await respond(here, "alpha")
        await stored_in_redis(here)
        second = await respond(there, "alpha")
        assert (first.cache, second.cache, (await respond(there, "alpha")).cache) == ("miss", "l2", "l1")
        assert second.hits == first.hits
        levels = there.cache_report().levels
        assert (levels["l1"].hits, levels["l2"].hits, levels["l2"].state) == (1, 1, "closed")


async def test_a_write_of_one_service_invalidates_the_responses_of_the_other(settings: Settings) -> None:
    async with open_service(settings) as here, open_service(settings) as there, background(there):
        scope = here.anonymous.scope
        for number in range(5):
            await index(here, [Document(id=f"d{number}", text="alpha")])
            assert len((await respond(here, "alpha", limit=50)).hits) == number + 1
            there.maintenance.refresh()
            await eventually(
                lambda: there.search.data_versions.current(scope) == here.search.data_versions.current(scope)
            )
            assert len((await respond(there, "alpha", limit=50)).hits) == number + 1
        await here.documents.delete("d0", here.anonymous)
        assert len((await respond(here, "alpha", limit=50)).hits) == 4


async def test_a_response_of_a_service_with_other_synonyms_is_not_used(settings: Settings, tmp_path: Path) -> None:
    """The same request, the same documents, the same build: what differs is a file of each machine."""
    (tmp_path / "here.txt").write_text("sun, star\n")
    (tmp_path / "there.txt").write_text("sun, alpha\n")
    chosen = {name: settings.changed(query_expansion=f"synonyms://{tmp_path}/{name}.txt") for name in ("here", "there")}
    async with open_service(chosen["here"]) as here, open_service(chosen["there"]) as there:
        await index(here, [Document(id="a", text="alpha"), Document(id="s", text="star")])
        there.maintenance.refresh()
        assert [hit.id for hit in (await respond(here, "sun", mode="keyword")).hits] == ["s"]
        await stored_in_redis(here)
        other = await respond(there, "sun", mode="keyword")
        assert (other.cache, [hit.id for hit in other.hits]) == ("miss", ["a"])


async def test_a_write_does_not_invalidate_other_scopes(settings: Settings) -> None:
    """This is so only if no file of this machine is searched: there all scopes share one version."""
    async with open_service(settings) as service:
        versions = DataVersions((), "", service.health.counters)
        scope, other = service.anonymous.scope, Scope("other", "other")
        await versions.ensure_loaded(scope)
        await versions.ensure_loaded(other)
        before = versions.current(scope), versions.current(other)
        await index(service, [Document(id="a", text="alpha")], other)
        assert versions.current(scope) == before[0]
        assert versions.current(other) != before[1]
        await versions.advance((), all_scopes=True)
        assert versions.current(scope) != before[0]


async def test_without_redis_the_service_works(settings: Settings) -> None:
    away = settings.changed(cache="redis://127.0.0.1:1/0", cache_timeout_ms=50)
    async with open_service(away) as service:
        await index(service, [Document(id="a", text="alpha")])
        assert [(await respond(service, "alpha")).cache for _ in range(2)] == ["miss", "l1"]
        await index(service, [Document(id="b", text="alpha")])
        assert {hit.id for hit in (await respond(service, "alpha")).hits} == {"a", "b"}
        assert (await respond(service, "alpha")).degraded == ()


async def test_a_service_that_starts_while_redis_hangs_waits_no_longer_than_the_time_limit(
    settings: Settings, redis_on: Callable[[int], tuple[str, subprocess.Popen[bytes]]]
) -> None:
    url, process = redis_on(free_port())
    stopped = settings.changed(cache=url, cache_timeout_ms=50)
    async with open_service(stopped) as other:
        await index(other, [Document(id="a", text="alpha")])
    os.kill(process.pid, signal.SIGSTOP)
    async with open_service(stopped) as service:
        durations_s = []
        for number in range(5):
            start = perf_counter()
            assert (await respond(service, f"alpha {number}")).degraded == ()
            durations_s.append(perf_counter() - start)
        assert max(durations_s) < 0.05 * 2 + 5  # forever without the time limit
        os.kill(process.pid, signal.SIGCONT)


def test_where_nothing_can_be_written_each_process_has_responses_of_its_own(tmp_path: Path) -> None:
    """The folder does not exist, as on a read-only disk."""
    first, second = (caches._installation_id(tmp_path / "absent") for _ in range(2))
    assert first != second
    (tmp_path / "data").mkdir()
    assert caches._installation_id(tmp_path / "data") == caches._installation_id(tmp_path / "data")


def test_an_id_that_exists_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a searching process shares responses with the one that writes."""
    written = caches._installation_id(tmp_path)

    def read_only(path: Path) -> NoReturn:
        raise OSError(EROFS, "read-only file system", str(path))

    monkeypatch.setattr(caches.files, "exclusive", read_only)
    assert caches._installation_id(tmp_path) == written
