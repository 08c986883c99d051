"""Every operation of the API: its path, its role, and its types. OpenAPI is generated from this table.

Each handler refers to its operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters import Document
from orchestrator.auth.principal import Role
from orchestrator.indexing.chunks import DEFAULT_CHUNK_TOKENS
from orchestrator.schema import documents, feedback, operations, search
from orchestrator.schema.batch import BatchLine
from orchestrator.service.documents import DEFAULT_LISTED, MAX_LISTED
from orchestrator.service.neighbors import DEFAULT_NEIGHBORS, MAX_NEIGHBORS

NDJSON = "application/x-ndjson"
JSON = "application/json"
TEXT, OPEN_METRICS = "text/plain", "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    :param summary: one line for the OpenAPI document.
    :param response: type of the body of a success.
    :param body: type of the request's body, one a line if ``media_type`` is NDJSON.
    :param problems: statuses of errors.
    :param other_statuses: statuses besides 200 with the same body.
    :param response_media_types: what the body of a success may be.
    :param parameters: of the query, by name: the schema of each.
    :param is_documented: whether it is in the OpenAPI document.
    """

    method: str
    path: str
    summary: str
    response: type
    body: type | None = None
    media_type: str = JSON
    problems: tuple[int, ...] = ()
    role: Role = "reader"
    other_statuses: tuple[int, ...] = ()
    response_media_types: tuple[str, ...] = (JSON,)
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    is_documented: bool = True


_CHUNKS: dict[str, dict[str, object]] = {
    "chunk": {
        "type": "boolean",
        "default": False,
        "description": f"split each document of more than {DEFAULT_CHUNK_TOKENS} tokens into chunks, which replace the "
        "chunks that it has; `lines` lists them, too",
    },
    "replace": {
        "enum": ["children"],
        "description": "delete the chunks of these documents, and of their parents, that are not in the body, in one "
        "write; then every line must be valid, and there are at most 4096 of 16 MiB",
    },
}
_LIST: dict[str, dict[str, object]] = {
    "collection": {"type": "string", "minLength": 1, "description": "only the documents of this collection"},
    "filter": {
        "type": "string",
        "contentMediaType": JSON,
        "description": "only the documents that pass this filter, which is JSON as in a search",
    },
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED},
    "cursor": {"type": "string", "description": "next_cursor of the page before"},
}
_COLLECTION = {
    "collection": {
        "type": "string",
        "minLength": 1,
        "description": "of the document; required if documents of several collections have the id",
    }
}
_NEIGHBORS: dict[str, dict[str, object]] = {
    "limit": {
        "type": "integer",
        "minimum": 2,
        "maximum": MAX_NEIGHBORS,
        "default": DEFAULT_NEIGHBORS,
        "description": "documents and names together, the document itself included",
    }
}
_DRY_RUN = {"dry_run": {"type": "boolean", "default": False, "description": "count the documents only"}}
_CHILDREN = {"children": {"type": "boolean", "default": True, "description": "delete the chunks of the document, too"}}
_BODY = (408, 413, 422)
_KEY, _BUSY = (401, 403), (429, 503)

SEARCH = Operation(
    "POST",
    "/v1/search",
    "Search, and explain every score.",
    search.SearchResponse,
    search.SearchRequest,
    problems=(*_KEY, *_BODY, *_BUSY),
)
SEARCH_BATCH = Operation(
    "POST",
    "/v1/search/batch",
    "Search for each line, in order; lines are read, processed and answered at the same time.",
    BatchLine,
    search.SearchRequest,
    NDJSON,
    problems=(*_KEY, *_BUSY),
    response_media_types=(NDJSON,),
)
PUT_DOCUMENTS = Operation(
    "POST",
    "/v1/documents",
    "Index documents: valid lines are stored, invalid lines are reported.",
    documents.BulkResponse,
    Document,
    NDJSON,
    problems=(*_KEY, *_BODY, *_BUSY),
    role="admin",
    parameters=_CHUNKS,
)
LIST_DOCUMENTS = Operation(
    "GET",
    "/v1/documents",
    "Documents in a fixed order, as they were written; as NDJSON a response has one on each line.",
    documents.DocumentsResponse,
    problems=(*_KEY, 422, *_BUSY),
    response_media_types=(JSON, NDJSON),
    parameters=_LIST,
)
GET_DOCUMENT = Operation(
    "GET",
    "/v1/documents/{id}",
    "One document, as it was written.",
    Document,
    problems=(*_KEY, 404, 409, 422, *_BUSY),
    parameters=_COLLECTION,
)
NEIGHBORS = Operation(
    "GET",
    "/v1/documents/{id}/neighbors",
    "What is one step away from a document in the graph: linked documents, names, and documents that mention these.",
    documents.NeighborsResponse,
    problems=(*_KEY, 404, 409, 422, *_BUSY),
    parameters=_COLLECTION | _NEIGHBORS,
)
DELETE_DOCUMENT = Operation(
    "DELETE",
    "/v1/documents/{id}",
    "Delete one document; a document that does not exist is no error.",
    documents.DeleteResponse,
    problems=(*_KEY, 409, 422, *_BUSY),
    role="admin",
    parameters=_COLLECTION | _CHILDREN,
)
DELETE_DOCUMENTS = Operation(
    "DELETE",
    "/v1/documents",
    "Delete the documents that match a filter; with `dry_run=true` count them.",
    documents.DeleteManyResponse,
    documents.DeleteManyRequest,
    problems=(*_KEY, *_BODY, *_BUSY),
    role="admin",
    parameters=_DRY_RUN,
)
DELETE_COLLECTION = Operation(
    "DELETE",
    "/v1/collections/{id}",
    "Delete a collection: all of its documents; with `dry_run=true` count them.",
    documents.DeleteManyResponse,
    problems=(*_KEY, 422, *_BUSY),
    role="admin",
    parameters=_DRY_RUN,
)
COLLECTIONS = Operation(
    "GET",
    "/v1/collections",
    "Every collection with a document that the caller may see.",
    documents.CollectionsResponse,
    problems=(*_KEY, *_BUSY),
)
GIVE_FEEDBACK = Operation(
    "POST",
    "/v1/feedback",
    "Say what became of a hit; the same again replaces it.",
    feedback.FeedbackResponse,
    feedback.FeedbackRequest,
    problems=(*_KEY, 404, 409, *_BODY, *_BUSY),
)
DELETE_FEEDBACK = Operation(
    "DELETE",
    "/v1/feedback",
    "Delete the responses that were recorded for the caller's tenant and environment, and the feedback to them.",
    feedback.DeletedFeedback,
    problems=(*_KEY, 404, *_BUSY),
    role="admin",
)
STATUS = Operation(
    "GET",
    "/v1/status",
    "The state of this process: its index, its sources, and the writes that they lack.",
    operations.Status,
    problems=(*_KEY, *_BUSY),
    role="operator",
)
CACHE = Operation(
    "GET",
    "/v1/cache",
    "Counters of every cache since this process started.",
    operations.CacheReport,
    problems=_KEY,
    role="operator",
)
METRICS = Operation(
    "GET",
    "/metrics",
    "Metrics in the formats of Prometheus and OpenMetrics.",
    str,
    problems=_KEY,
    role="operator",
    response_media_types=(TEXT, OPEN_METRICS),
)
LIVENESS = Operation("GET", "/livez", "The process runs its event loop.", operations.Liveness, role="none")
READINESS = Operation(
    "GET",
    "/readyz",
    "The state of each source; ready while one can be searched and the process is not draining.",
    operations.Readiness,
    role="none",
    other_statuses=(503,),
)

MCP = Operation("POST", "/mcp", "Tools for agents.", dict, dict, problems=(*_KEY, *_BODY, *_BUSY), is_documented=False)
OPENAPI = Operation("GET", "/openapi.json", "The description of this API, as OpenAPI 3.1.", dict, role="none")
CONSOLE = Operation("GET", "/", "The console, as a web page.", str, role="none", is_documented=False)
CONSOLE_FILE = Operation("GET", "/console/{id}", "A file of the console.", str, role="none", is_documented=False)
OPERATIONS = (
    SEARCH,
    SEARCH_BATCH,
    PUT_DOCUMENTS,
    LIST_DOCUMENTS,
    NEIGHBORS,
    GET_DOCUMENT,
    DELETE_DOCUMENT,
    DELETE_DOCUMENTS,
    DELETE_COLLECTION,
    COLLECTIONS,
    GIVE_FEEDBACK,
    DELETE_FEEDBACK,
    STATUS,
    CACHE,
    METRICS,
    LIVENESS,
    READINESS,
    MCP,
    OPENAPI,
    CONSOLE,
    CONSOLE_FILE,
)


def methods_of(path: str) -> set[str]:
    """The methods of all operations of a request's path, as it was sent."""
    matching = [each for each in OPERATIONS if _matches(each.path, path)]
    longest = max((_end(each.path) for each in matching), key=len, default="")
    methods = {each.method for each in matching if _end(each.path) == longest}
    return methods | {"HEAD"} if "GET" in methods else methods


def _matches(template: str, path: str) -> bool:
    prefix, variable, _ = template.partition("{")
    if not variable:
        return path == template
    end = _end(template)
    return path.startswith(prefix) and path.endswith(end) and len(path) > len(prefix) + len(end)


def _end(template: str) -> str:
    """What follows the id in a path."""
    return template.partition("}")[2]
