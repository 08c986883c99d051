"""A caller that hangs up is worked for no longer."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext

import pytest
import uvicorn

from orchestrator.api.app import create
from orchestrator.settings import Settings
from tests.servers.start import free_port

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("others", [0, 1])
async def test_who_hangs_up_ends_its_search_unless_somebody_else_waits_for_it(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, others: int
) -> None:
    app, port = create(chosen), free_port()
    config = uvicorn.Config(
        app, port=port, http="orchestrator.api.protocol:Bounded", proxy_headers=False, ws="none", log_config=None
    )
    server = uvicorn.Server(config)
    monkeypatch.setattr(server, "capture_signals", nullcontext)
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    service = app.state.service
    began, ended, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    search = service.engine.search

    async def watched(*arguments: object) -> object:
        began.set()
        try:
            await go_on.wait()
        finally:
            ended.set()
        return await search(*arguments)

    monkeypatch.setattr(service.engine, "search", watched)
    body = json.dumps({"query": "alpha", "timeout_ms": 60_000}).encode()
    request = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1 + others)]
    for _, writer in links:
        writer.write(request)
    async with asyncio.timeout(10):
        await began.wait()
        while len(server.server_state.tasks) < 1 + others:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        _, first = links[0]
        first.close()
        if others:
            while len(server.server_state.tasks) > others:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert not ended.is_set()
            go_on.set()
            assert (await links[1][0].readline()).startswith(b"HTTP/1.1 200")
        else:
            await ended.wait()
    for _, writer in links:
        writer.close()
    server.should_exit = True
    await asyncio.wait_for(serving, 20)
    assert "Exception in ASGI" not in caplog.text
    assert service.searches.working == service.searches.waiting == 0
