"""``POST /v1/search``."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from orchestrator.api.endpoint import Context, encoded
from orchestrator.contract import SearchRequest

_decode = msgspec.json.Decoder(SearchRequest).decode
_MAX_BYTES = 1_048_576


async def search(context: Context) -> Response:
    """Search, and say how it went."""
    request = _decode(await context.body(_MAX_BYTES))
    context.end_with_connection()
    delivered = await context.service.answers.respond(request, context.identity.caller, context.request_id)
    context.notes.update(
        mode=request.mode,
        fusion=request.fusion,
        limit=request.limit,
        timeout_ms=request.timeout_ms,
        cache=delivered.cache,
    )
    if answer := delivered.computed:
        context.notes.update(
            sources=answer.route.sources,
            hits=len(answer.hits),
            degraded=[f"{each.source}: {each.reason}" for each in answer.degraded],
            timings_ms=answer.timings_ms,
        )
    return encoded(delivered.body)
