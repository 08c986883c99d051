"""Adapters behind small ports: one folder for each source, with its embedded and its server implementation.

Here: ports, their implementations, documents and filters. Not here: when a source is searched, and what is done with
its ranking.
"""

from adapters.model.document import SENSITIVITIES, Document, Link, Record, Scope, Sensitivity
from adapters.model.errors import (
    AdapterError,
    BadResponse,
    Damaged,
    ExecutionFailed,
    Rejected,
    TimedOut,
    Unavailable,
    VersionConflict,
    VersionMismatch,
    Warming,
)
from adapters.ports.documents import DocumentFetcher, DocumentReader
from adapters.ports.encoders import DocumentEncoder, QueryEncoder
from adapters.ports.expander import Expander
from adapters.ports.replica import VectorRecord
from adapters.ports.reranker import Reranker, RerankResult
from adapters.ports.retriever import Retriever, SourceQuery
from adapters.ports.snapshot import Snapshot
from adapters.ports.writer import DocumentWriter

__all__ = [
    "SENSITIVITIES",
    "AdapterError",
    "BadResponse",
    "Damaged",
    "Document",
    "DocumentEncoder",
    "DocumentFetcher",
    "DocumentReader",
    "DocumentWriter",
    "ExecutionFailed",
    "Expander",
    "Link",
    "QueryEncoder",
    "Record",
    "Rejected",
    "RerankResult",
    "Reranker",
    "Retriever",
    "Scope",
    "Sensitivity",
    "Snapshot",
    "SourceQuery",
    "TimedOut",
    "Unavailable",
    "VectorRecord",
    "VersionConflict",
    "VersionMismatch",
    "Warming",
]
