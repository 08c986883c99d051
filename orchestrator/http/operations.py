"""``/livez``, ``/readyz``, ``/metrics`` and ``/v1/cache``: for operators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from orchestrator.http.endpoint import authorized
from orchestrator.http.request_context import HttpContext, json_response
from orchestrator.http.routes import CACHE, LIVENESS, METRICS, READINESS
from orchestrator.schema.operations import Liveness, Readiness
from orchestrator.service.health import OK, WARMING

router = APIRouter()


@router.api_route(LIVENESS.path, methods=["GET", "HEAD"])
async def liveness(context: Annotated[HttpContext, Depends(authorized(LIVENESS))]) -> Response:
    """Whether to restart this process."""
    del context
    return json_response(Liveness(True))


@router.api_route(READINESS.path, methods=["GET", "HEAD"])
async def readiness(context: Annotated[HttpContext, Depends(authorized(READINESS))]) -> Response:
    """Whether to send requests to this process."""
    service, draining = context.service, context.request.app.state.draining
    states = await service.health.by_source()
    is_ready = OK in states.values() and not draining
    if service.keyring:  # every caller may see this response: details are for ``trivium doctor``
        states = {source: state if state in (OK, WARMING) else "not ok" for source, state in states.items()}
    upkeep = service.upkeep.state if "verbose" in context.request.query_params else ""
    return json_response(Readiness(is_ready, states, draining, upkeep), 200 if is_ready else 503)


@router.api_route(CACHE.path, methods=["GET", "HEAD"])
async def cache_report(context: Annotated[HttpContext, Depends(authorized(CACHE))]) -> Response:
    """Counters of every cache."""
    return json_response(context.service.cache_report())


@router.api_route(METRICS.path, methods=["GET", "HEAD"])
async def metrics(context: Annotated[HttpContext, Depends(authorized(METRICS))]) -> Response:
    """All metrics of all processes behind this port."""
    accept = context.headers.get(b"accept", b"").decode("latin-1")
    content, media_type = await context.request.app.state.metrics.exposition(accept)
    return Response(content, headers={"Content-Type": media_type})
