"""The settings and mappings of an index in OpenSearch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from adapters.ports.server import Difference
from adapters.servers.server import SHARDS_ARE_FIXED, Partitioning
from fusion.values import DocId, DocumentFields

_MAX_TERM_CHARS = 4_096
"""More than the longest term has in UTF-16; the tokenizer would split it."""
_SETTINGS: dict[str, Any] = {
    "refresh_interval": "200ms",
    "analysis": {
        "tokenizer": {"at_spaces": {"type": "whitespace", "max_token_length": _MAX_TERM_CHARS}},
        "analyzer": {"terms": {"type": "custom", "tokenizer": "at_spaces"}},
    },
}


def index_settings(partitioning: Partitioning) -> dict[str, Any]:
    """The settings of a new index."""
    copies = {} if partitioning.copies is None else {"number_of_replicas": partitioning.copies - 1}
    return {**_SETTINGS, "number_of_shards": partitioning.shards, **copies}


def differences(name: str, found: Mapping[str, Any], partitioning: Partitioning) -> Iterator[Difference]:
    """How the index ``name`` differs from the partitioning, and how to change it.

    :param found: its settings, as ``GET /{index}/_settings`` returns them.
    """
    if (shards := int(found["number_of_shards"])) != partitioning.shards:
        observation = f"{shards} shards, TRIVIUM_OPENSEARCH_SHARDS is {partitioning.shards}"
        yield Difference(observation, SHARDS_ARE_FIXED)
    copies = int(found["number_of_replicas"]) + 1
    if partitioning.copies is not None and copies != partitioning.copies:
        replicas = partitioning.copies - 1
        observation = f"{copies} copies of each shard, TRIVIUM_REPLICATION_FACTOR is {partitioning.copies}"
        yield Difference(observation, f'PUT /{name}/_settings with {{"index": {{"number_of_replicas": {replicas}}}}}')


MAPPINGS: dict[str, Any] = {
    "dynamic": "strict",
    "_source": {"excludes": ["words", "exact", "identity", "values"]},
    "properties": {
        "collection": {"type": "keyword"},
        "filter_terms": {"type": "keyword", "doc_values": False, "norms": False},
        "identity": {"type": "keyword", "index": False},
        "values": {"type": "keyword", "norms": False},
        "words": {"type": "text", "analyzer": "terms", "index_options": "freqs"},
        "exact": {"type": "text", "analyzer": "terms"},
        "language": {"type": "keyword"},
        "candidate": {"type": "keyword", "index": False},
        "record": {"type": "object", "enabled": False},
    },
}
"""``words`` and ``exact`` are the terms of a document (see :mod:`adapters.keyword.analysis`), and ``language`` is the
language of its stems. ``values`` has a term for each value, by which documents are
sorted and counted, ``identity`` the id.
``candidate`` is what a search returns, a :class:`Candidate` as JSON in a column: it reads no stored record."""


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    """The id and the rank fields of a document."""

    id: DocId
    fields: DocumentFields | None
