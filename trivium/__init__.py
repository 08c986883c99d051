"""Trivium in Python: search over vectors, a knowledge graph and keywords in this process, or on servers.

``open`` is for synchronous code, ``open_service`` for ``async`` code; both use the same settings as the command
``trivium``. ``docs/reference/python.md`` shows both.
"""

from adapters import AdapterError, Document, Link
from orchestrator import SearchRequest, SearchResponse, Service, open_service
from orchestrator.indexing.objects import parse_objects
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.hits import SearchHit
from orchestrator.settings import Settings
from orchestrator.settings.loading import SettingsError, load
from trivium.index import Index, InvalidDocuments, open

__all__ = [
    "AdapterError",
    "BadRequest",
    "Document",
    "Index",
    "InvalidDocuments",
    "Link",
    "SearchHit",
    "SearchRequest",
    "SearchResponse",
    "Service",
    "Settings",
    "SettingsError",
    "load",
    "open",
    "open_service",
    "parse_objects",
]
