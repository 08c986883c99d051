"""Adapters behind small ports: one folder for each source, with its embedded and its server implementation.

Here: ports, their implementations, documents and filters. Not here: when a source is searched, and what is done with
its ranking. The values of ``model`` can be imported from here; a program that only needs these starts fast.
"""

from adapters.model.document import Document, Link, Record, Scope
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
from adapters.model.protection import SENSITIVITIES, Sensitivity, Viewer

__all__ = [
    "SENSITIVITIES",
    "AdapterError",
    "BadResponse",
    "Damaged",
    "Document",
    "ExecutionFailed",
    "Link",
    "Record",
    "Rejected",
    "Scope",
    "Sensitivity",
    "TimedOut",
    "Unavailable",
    "VersionConflict",
    "VersionMismatch",
    "Viewer",
    "Warming",
]
