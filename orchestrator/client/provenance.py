"""What frameworks get of a hit beside its text: where it is from, and why it was found."""

from __future__ import annotations

from typing import Any

from orchestrator.schema.search import SearchHit


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
        "score": hit.score,
        "confidence": hit.confidence,
        "sources": found,
    }
    return {**hit.metadata, **{name: value for name, value in fields.items() if value not in (None, "", [])}}
