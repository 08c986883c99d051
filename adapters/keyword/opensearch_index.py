"""What an index in OpenSearch looks like: how text is cut into terms, and what is kept of a document."""

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
            "short": {"type": "length", "max": analysis.LONGEST - 1},
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
"""One shard until the user makes it more: BM25's statistics are a shard's own."""

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
