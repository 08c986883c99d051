"""The service goes on while another generation becomes live: no request fails, none has hits of two generations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from orchestrator.bootstrap.dropped_generation import drop_generation
from orchestrator.http.app import create_app
from orchestrator.indexing.generations.catalog import Catalog, Generation
from orchestrator.settings import Settings
from tests.orchestrator.bootstrap.helpers import eventually
from tests.orchestrator.generations.helpers import built, switched
from tests.orchestrator.http.helpers import index_documents, ndjson, search

pytestmark = pytest.mark.anyio

DOCUMENTS = [{"id": f"d{n}", "title": f"Lake {n}", "text": f"The lake number {n} is deep."} for n in range(60)]


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[Starlette, httpx.AsyncClient]]:
    app = create_app(settings.changed(refresh_interval_ms=10))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield app, client


async def test_searches_go_on_while_a_generation_is_built_and_switched_to_and_back(chosen: Settings) -> None:
    answers: list[dict[str, Any]] = []

    async def search_steadily(client: httpx.AsyncClient) -> None:
        while True:
            response = await search(client, query=f"deep lake {len(answers) % 7}", explain=True, cache="bypass")
            answers.append({"status": response.status_code, **response.json()})

    async with serving(chosen) as (app, client):
        await index_documents(app, DOCUMENTS)
        searching = [asyncio.create_task(search_steadily(client)) for _ in range(3)]
        first = app.state.service
        generation = await built(chosen.changed(embedding_text=("title",)))
        await switched(chosen, generation.version)
        await eventually(lambda: app.state.service is not first)
        count = len(answers)
        await eventually(lambda: len(answers) > count + 20)
        await switched(chosen, 1)
        second = app.state.service
        await eventually(lambda: app.state.service is not second)
        count = len(answers)
        await eventually(lambda: len(answers) > count + 20)
        for task in searching:
            task.cancel()
        await asyncio.gather(*searching, return_exceptions=True)
    assert {answer["status"] for answer in answers} == {200}
    assert all(answer["hits"] and not answer["degraded"] for answer in answers)
    names = [answer["explain"]["generation"] for answer in answers]
    assert set(names) == {"trivium", generation.name}
    assert (names[0], names[-1]) == ("trivium", "trivium")
    builds = {(answer["explain"]["generation"], answer["index_version"]) for answer in answers}
    assert len(builds) == 2


async def test_writes_go_to_the_live_generation_and_the_old_one_may_be_dropped(chosen: Settings) -> None:
    async with serving(chosen) as (app, client):
        await index_documents(app, DOCUMENTS)
        generation = await built(chosen)
        first = app.state.service
        await switched(chosen, generation.version)
        await eventually(lambda: app.state.service is not first)
        response = await client.post("/v1/documents", content=ndjson({"id": "new", "text": "A new volcano."}))
        assert response.status_code == 200, response.text
        catalog = Catalog(chosen.storage.data_dir)
        catalog.update(lambda known: known.with_(_long_ago(known.require(1))))
        await drop_generation(chosen, catalog.read().require(1))
        found = (await search(client, query="volcano")).json()
        assert (found["hits"][0]["id"], found["degraded"]) == ("new", [])


async def test_a_generation_that_cannot_be_opened_leaves_the_one_before(
    chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(chosen) as (app, client):
        await index_documents(app, DOCUMENTS)
        generation = await built(chosen)
        catalog = Catalog(chosen.storage.data_dir)
        (manifest,) = (catalog.folder_of(generation) / "index").glob("manifest.json")
        content = manifest.read_bytes()
        manifest.write_bytes(content + b"x")
        catalog.update(lambda known: replace(known, live=generation.version))
        await eventually(lambda: "searches use the one before" in capsys.readouterr().err)
        assert (await search(client, query="lake")).json()["hits"]


def _long_ago(generation: Generation) -> Generation:
    return replace(generation, left_at=0.0)
