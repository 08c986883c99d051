from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from orchestrator.http.app import create_app
from orchestrator.settings import Settings


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
