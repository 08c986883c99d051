"""``/livez`` and ``/readyz``: whether to restart this process, and whether to send it requests."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.api.endpoint import Context, json
from orchestrator.contract import SOURCES, Liveness, Readiness


async def live(context: Context) -> Response:
    """The process runs its event loop: that is all that is asked."""
    del context
    return json(Liveness(True))


async def ready(context: Context) -> Response:
    """Every embedded source is open once the service is: it would not have started otherwise."""
    documents = context.service.library.current().catalog.count
    return json(Readiness(True, dict.fromkeys(SOURCES, f"ok, {documents} documents")))
