"""The search service: it plans a query, searches the sources, ranks their results, and returns the response.

These are the public names; everything else is imported from its own module.
"""

from orchestrator.bootstrap import open_service
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.service import Service

__all__ = ["SearchRequest", "SearchResponse", "Service", "open_service"]
