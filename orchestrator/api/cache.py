"""``GET /v1/cache``: what each level did, for operators."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.api.endpoint import Context, json


async def report(context: Context) -> Response:
    """What each level of the cache did since this process began."""
    return json(context.service.cache_report())
