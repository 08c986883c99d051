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
    """What is wrong with each source; ready while one can answer, and the process is not about to end."""
    service, draining = context.service, context.request.app.state.draining
    told = await service.health()
    if service.keys:  # anybody may ask: what is wrong is for the doctor to tell
        told = {source: word if word == "ok" else "not well" for source, word in told.items()}
    well = "ok" in told.values() and not draining
    return json(Readiness(well, told, draining), 200 if well else 503)
