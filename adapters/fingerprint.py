"""Names for servers that do not allow free text in the names of documents and indexes."""

from __future__ import annotations

import hashlib
from uuid import UUID


def fingerprint(*texts: str) -> str:
    """128 bits of BLAKE2b (RFC 7693) over the texts, written as a UUID. Equal texts have equal fingerprints."""
    hasher = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode()
        hasher.update(len(encoded).to_bytes(8, "big") + encoded)
    return str(UUID(bytes=hasher.digest()))


def build_name(name: str, build_id: str) -> str:
    """The name on a server of an index as ``build_id`` built it; ``name`` itself is an alias of one of these."""
    return f"{name}-{fingerprint(build_id)[:8]}"
