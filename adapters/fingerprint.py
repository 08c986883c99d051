"""Names for stores that allow no free text in theirs."""

from __future__ import annotations

import hashlib
from uuid import UUID


def fingerprint(*parts: str) -> str:
    """128 bits of BLAKE2b (RFC 7693) over the parts, written as a UUID: the same parts, the same name."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        text = part.encode()
        digest.update(len(text).to_bytes(8, "big") + text)
    return str(UUID(bytes=digest.digest()))


def generation_name(name: str, index_version: str) -> str:
    """What a store calls the index that ``index_version`` built; ``name`` itself is an alias of one of these."""
    return f"{name}-{fingerprint(index_version)[:8]}"
