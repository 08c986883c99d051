"""An entry as bytes, for a store that other programs, and other versions of this one, write to as well."""

from __future__ import annotations

import struct
from zlib import crc32

from cache.policy import Entry

VERSION = 1
_HEAD = struct.Struct(">BdffI")
"""Version, born, fresh_s, stale_s, checksum of the content."""


def encode(entry: Entry) -> bytes:
    """A version byte, the times, a checksum, the content."""
    return _HEAD.pack(VERSION, entry.born, entry.fresh_s, entry.stale_s, crc32(entry.content)) + entry.content


def decode(written: bytes) -> Entry | None:
    """What :func:`encode` wrote; ``None`` for anything else."""
    if len(written) < _HEAD.size:
        return None
    version, born, fresh_s, stale_s, checksum = _HEAD.unpack_from(written)
    content = written[_HEAD.size :]
    if version != VERSION or checksum != crc32(content):
        return None
    return Entry(content, born, fresh_s, stale_s)
