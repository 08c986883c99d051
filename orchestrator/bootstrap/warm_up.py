"""One search in every mode before the service serves, so that first requests are as fast as later ones."""

from __future__ import annotations

import logging

from orchestrator.planning.stage_results import AllSourcesFailed
from orchestrator.schema.search import AUTO, HYBRID, SearchRequest
from orchestrator.service.service import Service

_log = logging.getLogger(__name__)


async def warm_up(service: Service) -> None:
    """Search once in every mode: everything that is loaded on first use is loaded now."""
    for mode in (AUTO, HYBRID, *(source.name for source in service.search.sources)):
        request = SearchRequest(query="warm up", mode=mode, timeout_ms=60_000)
        try:
            await service.search.search(request, service.anonymous, "warm-up")
        except AllSourcesFailed as error:  # a server that is away must not stop the start
            _log.warning("warming up mode %s: %s", mode, error)
