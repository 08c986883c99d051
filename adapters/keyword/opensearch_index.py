"""The settings and mappings of an index in OpenSearch."""

from __future__ import annotations

from typing import Any

from adapters.keyword import analysis

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
        "id": {"type": "keyword"},
        "collection": {"type": "keyword"},
        "labels": {"type": "keyword", "doc_values": False, "norms": False},
        "passage": {"type": "text", "analyzer": "trivium"},
        "facts": {"type": "object", "enabled": False},
        "record": {"type": "object", "enabled": False},
    },
}
"""``labels`` are the filter terms of a document, ``facts`` its rank fields, ``passage`` its indexed texts."""
