"""``/livez``, ``/readyz``, ``/metrics``, ``/v1/status`` and ``/v1/cache``: for operators."""

from __future__ import annotations

from importlib.metadata import version

import anyio.to_thread
from fastapi import APIRouter
from starlette.responses import Response

from orchestrator.http.endpoint import serves
from orchestrator.http.request_context import HttpContext, json_response
from orchestrator.http.routes import CACHE, LIVENESS, METRICS, READINESS, STATUS
from orchestrator.schema.operations import Liveness, Readiness, Status
from orchestrator.service.health import OK, WARMING

router = APIRouter()


@serves(router, LIVENESS)
async def liveness(context: HttpContext) -> Response:
    """Whether to restart this process."""
    del context
    return json_response(Liveness(True))


@serves(router, READINESS)
async def readiness(context: HttpContext) -> Response:
    """Whether to send requests to this process."""
    service, draining = context.service, context.request.app.state.draining
    states = await service.health.by_source()
    is_ready = OK in states.values() and not draining
    if service.keyring:  # every caller may see this response: details are for ``trivium doctor``
        states = {source: state if state in (OK, WARMING) else "not ok" for source, state in states.items()}
    upkeep = service.upkeep.state if context.request.scope["query_string"].startswith(b"verbose") else ""
    return json_response(Readiness(is_ready, states, draining, upkeep), 200 if is_ready else 503)


@serves(router, STATUS)
async def status(context: HttpContext) -> Response:
    """The state of this process and of its sources."""
    service = context.service
    state = await anyio.to_thread.run_sync(service.state.read)
    found = Status(
        release=version("trivium"),
        index_version=state.build_id,
        generation=state.generation,
        documents=await service.count(),
        sources=await service.health.by_source(),
        circuits=state.circuits,
        replicas=state.lags,
        mismatches=service.search.mismatches(),
        upkeep=service.upkeep.state,
        accepts_writes=state.accepts_writes,
        running=state.running,
        waiting=state.waiting,
        log_bytes=state.log_bytes,
        disk_free_bytes=state.disk_free_bytes,
    )
    return json_response(found)


@serves(router, CACHE)
async def cache_report(context: HttpContext) -> Response:
    """Counters of every cache."""
    return json_response(await context.request.app.state.metrics.cache_report())


@serves(router, METRICS)
async def metrics(context: HttpContext) -> Response:
    """All metrics of all processes behind this port."""
    accept = context.headers.get(b"accept", b"").decode("latin-1")
    content, media_type = await context.request.app.state.metrics.exposition(accept)
    return Response(content, headers={"Content-Type": media_type})
