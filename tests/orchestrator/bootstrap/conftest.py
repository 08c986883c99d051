"""Fixtures for tests of an opened service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.model.sources import KEYWORD
from orchestrator.bootstrap import SourceBinding, open_service
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.orchestrator.bootstrap.fake_server import FakeServer, OpenService


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def opened(chosen: Settings, server: FakeServer) -> OpenService:
    """Opens the service with the keyword source on :class:`FakeServer`, and some settings."""

    @asynccontextmanager
    async def open_(prepare: bool = True, **settings: object) -> AsyncIterator[Service]:
        binding = SourceBinding(KEYWORD, server, server)
        values = {"retry_budget_ratio": 0.0, **settings}
        async with open_service(chosen.changed(**values), prepare=prepare, more_sources=[binding]) as service:
            yield service

    return open_
