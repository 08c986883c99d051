from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from orchestrator.api.app import create
from orchestrator.settings import Settings


@pytest.fixture
async def app(chosen: Settings) -> AsyncIterator[FastAPI]:
    """The whole service, its real model and engines included."""
    made = create(chosen)
    async with made.router.lifespan_context(made):
        yield made


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        yield made
