"""``POST /v1/search``."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from orchestrator.api.endpoint import Context, json
from orchestrator.contract import SearchRequest

_decode = msgspec.json.Decoder(SearchRequest).decode
_MAX_BYTES = 1_048_576


async def search(context: Context) -> Response:
    """Search, and say how it went."""
    request = _decode(await context.body(_MAX_BYTES))
    answer = await context.service.engine.search(request, context.service.caller, context.request_id)
    context.notes.update(
        mode=answer.mode,
        sources=answer.route.sources,
        hits=len(answer.hits),
        degraded=[f"{each.source}: {each.reason}" for each in answer.degraded],
        timings_ms=answer.timings_ms,
    )
    return json(answer)
