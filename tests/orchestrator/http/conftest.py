from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from orchestrator.http.app import create_app
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import KeyedClient, log_of


@pytest.fixture
async def app(chosen: Settings) -> AsyncIterator[FastAPI]:
    """The whole service, with its real model and engines."""
    application = create_app(chosen)
    async with application.router.lifespan_context(application):
        yield application


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http_client:
        yield http_client


@pytest.fixture
async def keyed(chosen: Settings, tmp_path: Path) -> AsyncIterator[KeyedClient]:
    path = tmp_path / "keys"
    path.touch()
    app = create_app(chosen.changed(keys_file=path, refresh_interval_ms=10))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            keyed_client = KeyedClient(path, client, app)
            app.state.service.keyring.refresh()
            yield keyed_client


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[dict[str, Any]]]:
    """Every line of the access log, decoded."""
    with caplog.at_level(logging.INFO, "trivium.access"), log_of("trivium.access", json.loads) as lines:
        yield lines
