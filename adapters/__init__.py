"""Every backend behind a small port: one folder a source, the embedded engine and the server beside each other."""

from adapters.document import SENSITIVITIES, Document, Link, Record, Scope, Sensitivity
from adapters.errors import AdapterError, BadResponse, Rejected, TimedOut, Unavailable, VersionMismatch
from adapters.port import (
    DocumentEncoder,
    DocumentReader,
    Entry,
    Expander,
    Judgement,
    Priors,
    Query,
    QueryEncoder,
    RecordReader,
    Reranker,
    Retriever,
    Writer,
)

__all__ = [
    "SENSITIVITIES",
    "AdapterError",
    "BadResponse",
    "Document",
    "DocumentEncoder",
    "DocumentReader",
    "Entry",
    "Expander",
    "Judgement",
    "Link",
    "Priors",
    "Query",
    "QueryEncoder",
    "Record",
    "RecordReader",
    "Rejected",
    "Reranker",
    "Retriever",
    "Scope",
    "Sensitivity",
    "TimedOut",
    "Unavailable",
    "VersionMismatch",
    "Writer",
]
