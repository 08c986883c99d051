"""The search service: it plans a query, searches the sources, ranks what they return, and offers the result.

The package's face: everything else is imported from its room.
"""

from orchestrator.bootstrap import open_service
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.service import Service

__all__ = ["SearchRequest", "SearchResponse", "Service", "open_service"]
