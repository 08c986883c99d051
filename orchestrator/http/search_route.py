"""``POST /v1/search``, without the overhead of FastAPI."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.http.request_context import HttpContext, encoded_response
from orchestrator.schema.search_input import decode_search_request
from orchestrator.service.response_cache import EncodedResponse

_MAX_BYTES = 1_048_576
_LOGGED_SCORES = 3


async def search(context: HttpContext) -> Response:
    """Search, and log the decisions."""
    request = decode_search_request(await context.body(_MAX_BYTES))
    context.cancel_on_disconnect()
    response = await context.service.search.respond(request, context.principal, context.request_id, may_mix=True)
    log_search(context, response)
    return encoded_response(response.content)


def log_search(context: HttpContext, response: EncodedResponse) -> None:
    """Record a search for the metrics, and its decisions for the log."""
    context.search = response
    plan = response.plan
    context.log_fields.update(
        mode=plan.mode,
        profile=plan.profile,
        fusion=plan.ranking.strategy,
        limit=plan.page.limit,
        timeout_ms=response.limit_ms,
        cache=response.cache,
    )
    if body := response.computed:
        context.log_fields.update(
            sources=body.route.sources,
            hits=len(body.hits),
            scores=[round(hit.fusion_score, 4) for hit in body.hits[:_LOGGED_SCORES]],
            degraded=[f"{each.source}: {each.reason}" for each in body.degraded],
            **(response.timings.log_fields if response.timings else {}),
            timings_ms=response.timings.rounded_ms() if response.timings else {},
        )
