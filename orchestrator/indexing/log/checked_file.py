"""Files with a checksum: what a disk has changed is found when it is read, and never taken for what was written."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from adapters import files

_MAGIC = b"TRIVIUM1"
_CHECKSUM_BYTES = 16


class Damaged(Exception):
    """A file does not contain what was written to it."""


def write(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable by its owner alone.

    :raises OSError: if it cannot be written.
    """
    files.replace(path, _MAGIC + _checksum(path, content) + content, mode=0o600)


def read(path: Path) -> bytes:
    """The content of a file.

    :raises Damaged: if it has changed since it was written, or was written under another name.
    :raises OSError: if it cannot be read; :class:`FileNotFoundError` if there is none.
    """
    stored = path.read_bytes()
    start = len(_MAGIC) + _CHECKSUM_BYTES
    content = stored[start:]
    if stored[:start] != _MAGIC + _checksum(path, content):
        raise Damaged(f"{path} is not what was written")
    return content


def _checksum(path: Path, content: bytes) -> bytes:
    hashed = blake2b(path.name.encode() + b"\0", digest_size=_CHECKSUM_BYTES)
    hashed.update(content)
    return hashed.digest()
