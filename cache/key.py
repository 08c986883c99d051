"""Values as a cache key: the same bytes for equal values, in every process."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

_PART_BYTES = 2_047
"""Maximum size of one update: for more, :mod:`hashlib` releases the GIL, and waits to acquire it again."""
_encode = msgspec.json.Encoder(order="deterministic").encode


def hash_key(*values: object) -> bytes:
    """A hash of 16 bytes of any values that JSON can express. Keys of different purposes need different values."""
    encoded = _encode(values)
    hasher = blake2b(digest_size=16)
    for start in range(0, len(encoded), _PART_BYTES):
        hasher.update(encoded[start : start + _PART_BYTES])
    return hasher.digest()
