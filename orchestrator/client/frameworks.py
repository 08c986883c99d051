"""What the retrievers of frameworks share: their client, and what they say of a hit beside its text."""

from __future__ import annotations

import weakref
from typing import Any

from orchestrator.client.synchronous import Client
from orchestrator.schema.hits import SearchHit


def client_of(owner: object, url: str, key: str | None, timeout_s: float) -> Client:
    """A client that is closed when its owner is not used any more: a retriever has no method that closes it."""
    client = Client(url, key, timeout_s=timeout_s)
    weakref.finalize(owner, client.close)
    return client


def provenance(hit: SearchHit) -> dict[str, Any]:
    """The metadata of the document, and over it the fields of the hit, as JSON has them; those without a value are left
    out. ``sources`` has the rank and the contribution of each source that found it.
    """
    found = {
        source: {"rank": each.rank, "contribution": each.contribution}
        for source, each in hit.sources.items()
        if each is not None
    }
    fields = {
        "id": hit.id,
        "collection": hit.collection,
        "title": hit.title,
        "url": hit.url,
        "parent_id": hit.parent_id,
        "chunk_index": hit.chunk_index,
        "section": hit.section,
        "created_at": None if hit.created_at is None else hit.created_at.isoformat(),
        "language": hit.language,
        "tags": list(hit.tags),
        "sensitivity": hit.sensitivity,
        "visibility": hit.visibility,
        "score": hit.score,
        "confidence": hit.confidence,
        "sources": found,
    }
    return {**hit.metadata, **{name: value for name, value in fields.items() if value not in (None, "", [])}}
