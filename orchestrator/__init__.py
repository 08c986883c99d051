"""The search service: it plans a query, searches the sources, ranks their results, and returns the response.

These are the public names; everything else is imported from its own module. They are imported when they are used: so
``orchestrator.client`` imports no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.bootstrap import open_service
    from orchestrator.schema.search import SearchRequest, SearchResponse
    from orchestrator.service.service import Service

__all__ = ["SearchRequest", "SearchResponse", "Service", "open_service"]

_MODULES = {
    "SearchRequest": "orchestrator.schema.search",
    "SearchResponse": "orchestrator.schema.search",
    "Service": "orchestrator.service.service",
    "open_service": "orchestrator.bootstrap",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
