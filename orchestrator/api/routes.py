"""Every path of the API: its handler, and what goes in and out. The OpenAPI document is made from this table."""

from __future__ import annotations

from dataclasses import dataclass

from adapters import Document
from orchestrator import contract
from orchestrator.api import cache, documents, health, search
from orchestrator.api.authorize import Need
from orchestrator.api.endpoint import Handler

NDJSON = "application/x-ndjson"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. ``takes`` is the type of the body, one a line where ``media`` is NDJSON."""

    method: str
    path: str
    handler: Handler
    gives: type
    takes: type | None = None
    media: str = JSON
    problems: tuple[int, ...] = ()
    needs: Need = "key"
    also: tuple[int, ...] = ()
    """Statuses besides 200 with the same body."""


_BODY = (408, 413, 422)
_KEY, _BUSY = (401, 403), (429, 503)

OPERATIONS = (
    Operation(
        "POST",
        "/v1/search",
        search.search,
        contract.SearchResponse,
        contract.SearchRequest,
        problems=(*_KEY, *_BODY, *_BUSY),
    ),
    Operation(
        "POST",
        "/v1/documents",
        documents.put,
        contract.BulkResponse,
        Document,
        NDJSON,
        problems=(*_KEY, *_BODY, *_BUSY),
        needs="admin",
    ),
    Operation("GET", "/v1/documents/{id}", documents.get, Document, problems=(*_KEY, 404, *_BUSY)),
    Operation(
        "DELETE",
        "/v1/documents/{id}",
        documents.delete,
        contract.DeleteResponse,
        problems=(*_KEY, *_BUSY),
        needs="admin",
    ),
    Operation("GET", "/v1/collections", documents.collections, contract.CollectionsResponse, problems=(*_KEY, *_BUSY)),
    Operation("GET", "/v1/cache", cache.report, contract.CacheReport, problems=_KEY, needs="admin"),
    Operation("GET", "/livez", health.live, contract.Liveness, needs="nothing"),
    Operation("GET", "/readyz", health.ready, contract.Readiness, also=(503,), needs="nothing"),
)
