"""Searches once in every mode at the start, so that the first requests are as fast as later ones."""

from __future__ import annotations

import asyncio
import logging

from adapters import AdapterError
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.schema.search import AUTO, HYBRID, SearchRequest
from orchestrator.service.errors import Overloaded
from orchestrator.service.service import Service

_TIMEOUT_MS = 500
"""Time limit of each search: an unavailable server must not delay the start."""
_log = logging.getLogger(__name__)


async def warm_up(service: Service) -> None:
    """Search once in every mode, concurrently: this loads everything that is loaded on first use."""
    modes = (AUTO, HYBRID, *(source.name for source in service.search.sources))
    encoders = service.search.retrieval.preparation.encoders
    vector = None if encoders.encodes_texts else (1.0,) * encoders.dimension
    await asyncio.gather(*(_search(service, mode, vector) for mode in modes))


async def _search(service: Service, mode: str, vector: tuple[float, ...] | None) -> None:
    request = SearchRequest(query="warm up", mode=mode, vector=vector, timeout_ms=_TIMEOUT_MS)
    try:
        await service.search.search(request, service.anonymous, "warm-up")
    except (AllSourcesFailed, AdapterError, Overloaded) as error:  # an unavailable server must not stop the start
        _log.warning("warming up mode %s: %s", mode, error)
