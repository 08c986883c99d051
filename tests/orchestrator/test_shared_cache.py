"""Two services on one real Redis: what one keeps the other finds, and what one writes the other learns."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import anyio
import msgspec
import pytest

from adapters import Document, Scope
from orchestrator.contract import SearchRequest, SearchResponse
from orchestrator.settings import Settings, read
from orchestrator.wiring import Service, opened
from tests.servers.start import free_port, redis_on

pytestmark = [pytest.mark.anyio, pytest.mark.server]


@pytest.fixture
def settings(tmp_path: Path, model_dir: Path, server_url: Callable[[str], str]) -> Settings:
    return read(
        data_dir=tmp_path / "data",
        model_dir=model_dir,
        cache=server_url("redis"),
        index_name=f"test-{uuid.uuid4().hex}",
        source_timeout_ms=20_000,
        cache_timeout_ms=500,
        cache_poll_ms=100,
    )


async def ask(service: Service, query: str = "alpha", **asked: object) -> SearchResponse:
    request = SearchRequest(query=query, timeout_ms=20_000, **asked)  # type: ignore[arg-type]
    return msgspec.json.decode((await service.answers.respond(request, service.caller, "r")).body, type=SearchResponse)


async def settled(service: Service) -> None:
    second = service.answers.kept.l2
    assert second
    await asyncio.gather(*second._writes)  # type: ignore[attr-defined]


async def test_what_one_keeps_the_other_finds(settings: Settings) -> None:
    async with opened(settings) as here, opened(settings) as there:
        await here.writer.index([Document(id="a", text="alpha beta")], here.caller.scope)
        there.refresh()
        first = await ask(here)
        await settled(here)
        second = await ask(there)
        assert (first.cache, second.cache, (await ask(there)).cache) == ("miss", "l2", "l1")
        assert second.hits == first.hits
        levels = there.cache_report().levels
        assert (levels["l1"].hits, levels["l2"].hits, levels["l2"].state) == (1, 1, "closed")


async def test_what_one_writes_the_other_learns(settings: Settings) -> None:
    async with opened(settings) as here, opened(settings) as there, anyio.create_task_group() as group:
        group.start_soon(there.generations.run)  # type: ignore[union-attr]
        for number in range(5):
            await here.writer.index([Document(id=f"d{number}", text="alpha")], here.caller.scope)
            assert len((await ask(here, limit=50)).hits) == number + 1
            there.refresh()
            async with asyncio.timeout(10):
                while there.versions.now(there.caller.scope) != here.versions.now(here.caller.scope):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            assert len((await ask(there, limit=50)).hits) == number + 1
        await here.writer.delete(here.caller.scope, ["d0"])
        assert len((await ask(here, limit=50)).hits) == 4
        group.cancel_scope.cancel()


async def test_a_write_leaves_what_is_kept_for_other_scopes(settings: Settings) -> None:
    """As long as no file of this machine is searched, that is: there all scopes share one version."""
    async with opened(settings) as service:
        mine, theirs = service.caller.scope, Scope("other", "other")
        versions = service.versions
        versions._seen = ()
        await versions.learn(mine)
        await versions.learn(theirs)
        before = versions.now(mine), versions.now(theirs)
        await service.writer.index([Document(id="a", text="alpha")], theirs)
        assert versions.now(mine) == before[0]
        assert versions.now(theirs) != before[1]
        await versions.written((), others=True)
        assert versions.now(mine) != before[0]


async def test_without_redis_everything_goes_on(settings: Settings) -> None:
    away = settings.model_copy(update={"cache": "redis://127.0.0.1:1/0", "cache_timeout_ms": 50})
    async with opened(away) as service:
        await service.writer.index([Document(id="a", text="alpha")], service.caller.scope)
        assert [(await ask(service)).cache for _ in range(2)] == ["miss", "l1"]
        await service.writer.index([Document(id="b", text="alpha")], service.caller.scope)
        assert {hit.id for hit in (await ask(service)).hits} == {"a", "b"}
        assert (await ask(service)).degraded == ()


async def test_a_pod_that_begins_while_redis_stands_still_waits_for_it_no_longer_than_it_may(
    settings: Settings,
) -> None:
    with redis_on(free_port()) as (url, process):
        stopped = settings.model_copy(update={"cache": url, "cache_timeout_ms": 50})
        async with opened(stopped) as service:
            await service.writer.index([Document(id="a", text="alpha")], service.caller.scope)
            os.kill(process.pid, signal.SIGSTOP)
            service.answers._versions._generations._known.clear()  # type: ignore[union-attr]
            took = []
            for number in range(5):
                began = perf_counter()
                assert (await ask(service, f"alpha {number}")).degraded == ()
                took.append(perf_counter() - began)
            assert max(took) < 0.05 * 2 + 0.3
            os.kill(process.pid, signal.SIGCONT)
