"""A client of the HTTP API: ``Client`` for synchronous code, ``AsyncClient`` for ``async`` code.

Here: requests, their deadlines, retries, pages, and one tree of errors. Not here: anything that searches. It imports
the types of the API and no engine, so that it starts fast; install it as ``trivium[client]``.
"""

from adapters.model.document import Document, Link
from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.batches import BatchOutcome
from orchestrator.client.errors import (
    BadReply,
    Conflict,
    DeadlineExceeded,
    Failed,
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    Refused,
    TriviumError,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from orchestrator.client.indexing import IndexOutcome
from orchestrator.client.retries import Retries
from orchestrator.client.synchronous import Client
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import SearchRequest, SearchResponse

__all__ = [
    "AsyncClient",
    "BadReply",
    "BatchOutcome",
    "Client",
    "Conflict",
    "DeadlineExceeded",
    "Document",
    "Failed",
    "Forbidden",
    "IndexOutcome",
    "InvalidRequest",
    "Link",
    "NotFound",
    "Overloaded",
    "Refused",
    "Retries",
    "SearchHit",
    "SearchRequest",
    "SearchResponse",
    "TriviumError",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
]
