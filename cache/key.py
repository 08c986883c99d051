"""Values as a cache key: the same bytes for equal values, in every process."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

_encode = msgspec.json.Encoder(order="deterministic").encode


def hash_key(*values: object) -> bytes:
    """A hash of 16 bytes of any values that JSON can express. Keys of different purposes need different values."""
    return blake2b(_encode(values), digest_size=16).digest()
