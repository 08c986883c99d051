"""The record of changes: the keys of the documents that were written, in order, for generations that are not live.

A line has the CRC-32 of the rest, in eight hexadecimal digits, and the keys as JSON. Keys are recorded before the
documents are written. So a line at the end that a crash left incomplete belongs to a write that never began.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec

from adapters.model.errors import Damaged, Unavailable
from adapters.ports.replica import Key
from adapters.storage import files

_DIGITS = 8
_BLOCK_BYTES = 65_536
_decode = msgspec.json.Decoder(list[Key]).decode


class ChangeRecord:
    """The record in a folder. Any process may append; all methods block."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "changes"
        self._lock = folder / "changes.lock"

    def append(self, keys: Iterable[Key]) -> None:
        """Record the keys of a write that is about to begin. They are on disk when this returns.

        :raises Unavailable: if they cannot be recorded; then the write must not begin.
        """
        line = msgspec.json.encode(sorted(set(keys)))
        try:
            with self._opened() as file:
                file.write(b"%08x%s\n" % (crc32(line), line))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Unavailable("changes cannot be recorded", f"{self._path}: {error}") from error

    def end(self) -> int:
        """Where the record ends now, in bytes from its beginning."""
        with self._opened() as file:
            return file.tell()

    def read(self, start: int, end: int) -> Iterator[list[Key]]:
        """The keys of each write between two places, in order.

        :raises Damaged: if a line was changed by the disk.
        """
        if start >= end:
            return
        with self._path.open("rb") as file:
            file.seek(start)
            while file.tell() < end:
                line = file.readline().removesuffix(b"\n")
                if line[:_DIGITS] != b"%08x" % crc32(line[_DIGITS:]):
                    raise Damaged("the record of changes is damaged: build the generation again", str(self._path))
                yield _decode(line[_DIGITS:])

    def keys(self, start: int, end: int) -> list[Key]:
        """The keys of all writes between two places, each once.

        :raises Damaged: as :meth:`read`.
        """
        return list(dict.fromkeys(key for of_write in self.read(start, end) for key in of_write))

    def clear(self) -> None:
        """Empty the record: no generation needs it."""
        self._path.unlink(missing_ok=True)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """The file at its end, without an incomplete line there. No other process appends."""
        with files.exclusive(self._lock), self._path.open("a+b") as file:
            size = end = file.seek(0, os.SEEK_END)
            last = b""
            while end and b"\n" not in last:
                start = max(0, end - _BLOCK_BYTES)
                file.seek(start)
                last = file.read(end - start)
                end = start + last.rfind(b"\n") + 1
            if end != size:
                file.truncate(end)
            file.seek(end)
            yield file
