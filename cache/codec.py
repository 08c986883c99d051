"""A cache entry as bytes, for a store that other programs and other releases of this one write to as well."""

from __future__ import annotations

import struct
from zlib import crc32

from cache.policy import CacheEntry

FORMAT = 1
"""First byte of an encoded entry. It changes with the layout, so that entries of another layout are not read."""
_HEADER = struct.Struct(">BdffI")
"""Format, created_at, ttl_s, stale_while_revalidate_s, CRC-32 of the content."""


def encode(entry: CacheEntry) -> bytes:
    """The header, then the content. The two durations are rounded to 32-bit floats."""
    checksum = crc32(entry.content)
    header = _HEADER.pack(FORMAT, entry.created_at, entry.ttl_s, entry.stale_while_revalidate_s, checksum)
    return header + entry.content


def decode(encoded: bytes) -> CacheEntry | None:
    """The entry that :func:`encode` encoded; ``None`` for any other bytes."""
    if len(encoded) < _HEADER.size:
        return None
    format_, created_at, ttl_s, stale_while_revalidate_s, checksum = _HEADER.unpack_from(encoded)
    content = encoded[_HEADER.size :]
    if format_ != FORMAT or checksum != crc32(content):
        return None
    return CacheEntry(content, created_at, ttl_s, stale_while_revalidate_s)
