"""A cache entry as bytes, for a server that other programs and other releases of this one write to as well."""

from __future__ import annotations

import struct
from zlib import crc32

from cache.entry import CacheEntry

FORMAT = 2
"""First byte of an encoded entry. It changes with the layout, so that entries of another layout are not read."""
_HEADER = struct.Struct(">BdffIH")
"""Format, created_at, ttl_s, stale_while_revalidate_s, CRC-32 of the content, length of the key."""


def encode(key: bytes, entry: CacheEntry) -> bytes:
    """The header, the key, then the content. The two durations are rounded to 32-bit floats."""
    checksum = crc32(entry.content)
    header = _HEADER.pack(FORMAT, entry.created_at, entry.ttl_s, entry.stale_while_revalidate_s, checksum, len(key))
    return header + key + entry.content


def decode(key: bytes, encoded: bytes) -> CacheEntry | None:
    """The entry that :func:`encode` encoded with this key; ``None`` for any other bytes, such as the entry of
    another key."""
    if len(encoded) < _HEADER.size:
        return None
    format_, created_at, ttl_s, stale_while_revalidate_s, checksum, key_length = _HEADER.unpack_from(encoded)
    start = _HEADER.size + key_length
    content = encoded[start:]
    if format_ != FORMAT or encoded[_HEADER.size : start] != key or checksum != crc32(content):
        return None
    return CacheEntry(content, created_at, ttl_s, stale_while_revalidate_s)
