"""``/livez`` and ``/readyz``: whether to restart this process, and whether to send it requests."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.api.endpoint import Context, json
from orchestrator.contract import Liveness, Readiness


async def live(context: Context) -> Response:
    """The process runs its event loop: that is all that is asked."""
    del context
    return json(Liveness(True))


async def ready(context: Context) -> Response:
    """What is wrong with each source; ready while one can answer."""
    told = await context.service.health()
    well = "ok" in told.values()
    return json(Readiness(well, told), 200 if well else 503)
