"""Opens a service over the live generation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio.to_thread

from orchestrator.bootstrap.assembly import open_generation
from orchestrator.bootstrap.generations import live_settings
from orchestrator.bootstrap.sources import SourceBinding
from orchestrator.planning.planner import MAX_QUERY_CHARS
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    prepare: bool = True,
    more_sources: Sequence[SourceBinding] = (),
    max_query_chars: int = MAX_QUERY_CHARS,
) -> AsyncIterator[Service]:
    """Open everything that the settings name, and close it at the end. The service belongs to one event loop.

    It uses the generation that is live now, with the encoder and the extractor that built it. If another one becomes
    live, searches still use this one, and writes are refused. Parameters and errors are those of
    :func:`open_generation`.

    :raises VersionMismatch: also if ``strict_index``, and the settings name another encoder or extractor.
    """
    live = await anyio.to_thread.run_sync(live_settings, settings)
    async with open_generation(
        live, prepare=prepare, more_sources=more_sources, max_query_chars=max_query_chars
    ) as service:
        yield service
