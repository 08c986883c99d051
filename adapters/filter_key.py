"""Filters as keys of caches."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from adapters.filter import And, Filter

_KEY_BYTES = 16
_MAX_KEYED_BYTES = 2_097_152
"""Filters as JSON, whose hashes are cached."""
_encode = msgspec.json.Encoder().encode


class _CachedKey(NamedTuple):
    """The hash of a filter, and what it counts of :data:`_MAX_KEYED_BYTES`."""

    condition: Filter
    key: bytes
    size: int


_keys: LRUCache[int, _CachedKey] = LRUCache(_MAX_KEYED_BYTES, getsizeof=lambda cached: cached.size)


def filter_key(condition: Filter) -> bytes:
    """A hash of a filter: 16 bytes, the same for equal filters only (in Python 1.0 == True).

    One request uses its filters several times, for each source and collection, so the hashes of recent ones are cached
    by identity; the conjunctions of collections have their large conditions in common.
    """
    cached = _keys.get(id(condition))
    if cached is not None and cached.condition is condition:
        return cached.key
    if isinstance(condition, And):
        encoded = b"".join([b"and", *map(filter_key, condition.filters)])
    else:
        encoded = _encode(condition)
    key = blake2b(encoded, digest_size=_KEY_BYTES).digest()
    if len(encoded) <= _MAX_KEYED_BYTES:
        _keys[id(condition)] = _CachedKey(condition, key, len(encoded))
    return key
