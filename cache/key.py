"""A value as a key: the same for equal values, in every process."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

_encode = msgspec.json.Encoder(order="deterministic").encode


def key(*parts: object) -> bytes:
    """Sixteen bytes of anything that JSON can say: who wants two keys to differ has two values that do."""
    return blake2b(_encode(parts), digest_size=16).digest()
