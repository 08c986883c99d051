"""Filters as cache keys."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from adapters.model.filter import And, Filter

_KEY_BYTES = 16
_MAX_KEYED_BYTES = 2_097_152
"""Maximum total size of the filters, as JSON, whose hashes are cached."""
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
    return _keyed(condition).key


def _keyed(condition: Filter) -> _CachedKey:
    cached = _keys.get(id(condition))
    if cached is not None and cached.condition is condition:
        return cached
    if isinstance(condition, And):
        parts = [_keyed(each) for each in condition.filters]
        encoded = b"".join([b"and", *(part.key for part in parts)])
        size = len(encoded) + sum(part.size for part in parts)  # a cached conjunction references its conditions
    else:
        encoded = _encode(condition)
        size = len(encoded)
    keyed = _CachedKey(condition, blake2b(encoded, digest_size=_KEY_BYTES).digest(), size)
    if size <= _MAX_KEYED_BYTES:
        _keys[id(condition)] = keyed
    return keyed
