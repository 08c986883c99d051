"""Files with a checksum: what a disk has changed is found when it is read, and never taken for what was written.

The name of a file is part of its checksum, so that a file does not pass under another name.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

from adapters.model.errors import Damaged
from adapters.storage import files

_MAGIC = b"TRIVIUM1"
_CHECKSUM_BYTES = 16

T = TypeVar("T")


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
        raise _damaged(path)
    return content


def is_damaged(path: Path) -> bool:
    """Whether a file exists and :func:`read` would fail."""
    try:
        read(path)
    except FileNotFoundError:
        return False
    except (Damaged, OSError):
        return True
    return False


def write_json(path: Path, value: object) -> None:
    """Replace a file by the JSON ``{"checksum": …, "content": value}``.

    :raises OSError: if it cannot be written.
    """
    files.replace(path, _envelope(path, msgspec.json.encode(value)), mode=0o600)


def read_json(path: Path, kind: type[T]) -> T:
    """The value of a file that :func:`write_json` wrote.

    :raises Damaged: as :func:`read`.
    :raises msgspec.ValidationError: if it was written as another type.
    :raises OSError: as :func:`read`.
    """
    stored = path.read_bytes()
    content = stored[len(_envelope(path, b"")) - 1 : -1]
    if stored != _envelope(path, content):
        raise _damaged(path)
    return msgspec.json.decode(content, type=kind)


def _envelope(path: Path, content: bytes) -> bytes:
    return b'{"checksum":"%s","content":%s}' % (_checksum(path, content).hex().encode(), content)


def _checksum(path: Path, content: bytes) -> bytes:
    hashed = blake2b(path.name.encode() + b"\0", digest_size=_CHECKSUM_BYTES)
    hashed.update(content)
    return hashed.digest()


def _damaged(path: Path) -> Damaged:
    return Damaged("a stored file is damaged", f"{path} is not what was written")
