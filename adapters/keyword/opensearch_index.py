"""The settings and mappings of an index in OpenSearch."""

from __future__ import annotations

from typing import Any

import msgspec

from adapters.keyword import analysis
from fusion.rank_fields import DocId, DocumentFields

SETTINGS: dict[str, Any] = {
    "number_of_shards": 1,
    "refresh_interval": "200ms",
    "analysis": {
        "tokenizer": {
            "words": {"type": "pattern", "pattern": "[^\\p{IsAlphabetic}\\p{N}]+"},
        },
        "filter": {
            "short": {"type": "length", "max": analysis.MAX_TOKEN_CHARS - 1},
            "english": {"type": "stemmer", "language": "porter2"},
        },
        "analyzer": {
            "trivium": {
                "type": "custom",
                "tokenizer": "words",
                "filter": ["short", "lowercase", "asciifolding", "english"],
            },
        },
    },
}
"""One shard by default: each shard computes BM25 from its own statistics, so more of them change scores."""

MAPPINGS: dict[str, Any] = {
    "dynamic": "strict",
    "properties": {
        "collection": {"type": "keyword"},
        "labels": {"type": "keyword", "doc_values": False, "norms": False},
        "passage": {"type": "text", "analyzer": "trivium"},
        "candidate": {"type": "keyword", "index": False},
        "record": {"type": "object", "enabled": False},
    },
}
"""``labels`` are the filter terms of a document, ``passage`` its indexed texts. ``candidate`` is what a search returns
of it, a :class:`Candidate` in JSON: a column, so that a search reads and decompresses no stored record."""


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    """The id and the rank fields of a document."""

    id: DocId
    fields: DocumentFields | None
