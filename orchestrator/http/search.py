"""``POST /v1/search``: the raw route."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from orchestrator.http.context import HttpContext, encoded_response
from orchestrator.schema.search import SearchRequest

_decode = msgspec.json.Decoder(SearchRequest).decode
_MAX_BYTES = 1_048_576


async def search(context: HttpContext) -> Response:
    """Search, and log what was decided."""
    request = _decode(await context.body(_MAX_BYTES))
    context.cancel_on_disconnect()
    response = await context.service.search.respond(request, context.principal, context.request_id)
    context.log_fields.update(
        mode=request.mode,
        fusion=request.fusion,
        limit=request.limit,
        timeout_ms=request.timeout_ms,
        cache=response.cache,
    )
    if body := response.computed:
        context.log_fields.update(
            sources=body.route.sources,
            hits=len(body.hits),
            degraded=[f"{each.source}: {each.reason}" for each in body.degraded],
            timings_ms=response.timings_ms,
        )
    return encoded_response(response.content)
