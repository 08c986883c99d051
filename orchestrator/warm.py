"""First requests are as fast as later ones: everything that is loaded on first use is used once before."""

from __future__ import annotations

import logging
from typing import get_args

from orchestrator.contract import Mode, SearchRequest
from orchestrator.outcome import AllSourcesFailed
from orchestrator.wiring import Service

_log = logging.getLogger(__name__)


async def warm(service: Service) -> None:
    """Ask one query in every mode."""
    for mode in get_args(Mode):
        request = SearchRequest(query="warm up", mode=mode, timeout_ms=60_000)
        try:
            await service.engine.search(request, service.caller, "warm-up")
        except AllSourcesFailed as failed:  # a slow start is no reason not to start
            _log.warning("warming up %s: %s", mode, failed)
