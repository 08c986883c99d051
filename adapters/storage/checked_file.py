"""Files with a checksum, so that a change by the disk is an error when the file is read.

The first line of a file is ``trivium``, a space, and 128 bits of BLAKE2b (RFC 7693) over its name and its content, in
hexadecimal digits; the content follows. The name counts, so that a file does not pass under another one.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.model.errors import Damaged
from adapters.storage import files

CHECKSUM_BYTES = 16
_FIRST_LINE_BYTES = len(b"trivium \n") + 2 * CHECKSUM_BYTES

T = TypeVar("T")


def write(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable by its owner alone.

    :raises OSError: if it cannot be written.
    """
    files.replace(path, _first_line(path, content) + content, mode=0o600)


def read(path: Path) -> bytes:
    """The content of a file.

    :raises Damaged: on a checksum mismatch, also if it was written under another name.
    :raises OSError: if it cannot be read; :class:`FileNotFoundError` if there is none.
    """
    stored = path.read_bytes()
    content = stored[_FIRST_LINE_BYTES:]
    if stored[:_FIRST_LINE_BYTES] != _first_line(path, content):
        raise _damaged(path)
    return content


def mapped(path: Path) -> npt.NDArray[np.uint8]:
    """The content of a file, mapped into memory; errors as of :func:`read`."""
    if path.stat().st_size < _FIRST_LINE_BYTES:
        raise _damaged(path)
    # As a plain array: indexing a numpy.memmap costs 20 µs more, for the same memory.
    stored = np.asarray(np.memmap(path, np.uint8, mode="r"))
    content = stored[_FIRST_LINE_BYTES:]
    if stored[:_FIRST_LINE_BYTES].tobytes() != _first_line(path, content.data):
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
    """Replace a file by a value as JSON; errors as of :func:`write`."""
    write(path, msgspec.json.encode(value))


def read_json(path: Path, kind: type[T]) -> T:
    """The value of a file that :func:`write_json` wrote.

    :raises Damaged: as :func:`read`.
    :raises msgspec.ValidationError: if it was written as another type.
    :raises OSError: as :func:`read`.
    """
    return msgspec.json.decode(read(path), type=kind)


def _first_line(path: Path, content: bytes | memoryview) -> bytes:
    hashed = blake2b(path.name.encode() + b"\0", digest_size=CHECKSUM_BYTES)
    hashed.update(content)
    return b"trivium %s\n" % hashed.hexdigest().encode()


def _damaged(path: Path) -> Damaged:
    return Damaged("a stored file is damaged", f"{path}: checksum mismatch")
