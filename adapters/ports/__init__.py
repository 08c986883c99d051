"""The ports: what the orchestrator needs from an adapter, as small protocols, some of them combined.

Here: protocols, the values that pass through them, and how functions of users are found and run. Not here: any
implementation of a protocol.
"""

from adapters.ports.documents import DocumentFetcher, DocumentFinder, DocumentPage, DocumentReader, DocumentSampler
from adapters.ports.encoders import DocumentEncoder, Matrix, QueryEncoder, TextEncoder, Vector
from adapters.ports.expander import Expander
from adapters.ports.graph import Centrality, CentralityReader, EntityLookup, GraphMaintenance, LinkStrengthReader
from adapters.ports.listing import DocumentLister, Listing, SortKey
from adapters.ports.replica import IndexAdmin, Key, Replica, VectorRecord
from adapters.ports.reranker import Reranker, RerankResult
from adapters.ports.retriever import ImmediateRetriever, Retriever, SourceQuery, TermScorer
from adapters.ports.server import ServerProbe, ServerSource
from adapters.ports.snapshot import SearchedDocuments, Snapshot, Snapshots
from adapters.ports.writer import Acknowledgement, DocumentWriter

__all__ = [
    "Acknowledgement",
    "Centrality",
    "CentralityReader",
    "DocumentEncoder",
    "DocumentFetcher",
    "DocumentFinder",
    "DocumentLister",
    "DocumentPage",
    "DocumentReader",
    "DocumentSampler",
    "DocumentWriter",
    "EntityLookup",
    "Expander",
    "GraphMaintenance",
    "ImmediateRetriever",
    "IndexAdmin",
    "Key",
    "LinkStrengthReader",
    "Listing",
    "Matrix",
    "QueryEncoder",
    "Replica",
    "RerankResult",
    "Reranker",
    "Retriever",
    "SearchedDocuments",
    "ServerProbe",
    "ServerSource",
    "Snapshot",
    "Snapshots",
    "SortKey",
    "SourceQuery",
    "TermScorer",
    "TextEncoder",
    "Vector",
    "VectorRecord",
]
