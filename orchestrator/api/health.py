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
    """Whether each index holds every document; ready while one does."""
    library = context.service.library
    count = library.current().catalog.count
    held = library.documents_by_part()
    told = {
        source: "ok" if documents == count else f"holds {documents} of {count} documents"
        for source, documents in held.items()
    }
    well = any(documents == count for documents in held.values())
    return json(Readiness(well, told), 200 if well else 503)
