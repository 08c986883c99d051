"""``/v1/feedback``: what became of the hits of a response."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from orchestrator.http.endpoint import serves
from orchestrator.http.request_context import HttpContext, json_response
from orchestrator.http.routes import DELETE_FEEDBACK, GIVE_FEEDBACK
from orchestrator.schema.search_input import decode_feedback

_MAX_BYTES = 16_384

router = APIRouter()


@serves(router, GIVE_FEEDBACK)
async def give_feedback(context: HttpContext) -> Response:
    """Record what became of a hit."""
    given = decode_feedback(await context.body(_MAX_BYTES))
    context.log_fields.update(kind=given.kind)
    return json_response(await context.service.feedback.give(given, context.principal))


@serves(router, DELETE_FEEDBACK)
async def delete_feedback(context: HttpContext) -> Response:
    """Delete what was recorded for the caller's tenant and environment."""
    deleted = await context.service.feedback.delete(context.principal)
    context.log_fields.update(responses=deleted.responses, feedback=deleted.feedback)
    return json_response(deleted)
