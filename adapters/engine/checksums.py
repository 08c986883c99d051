"""Checksums of the files of a commit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TypeAlias

from adapters.model.errors import Damaged
from adapters.storage.checked_file import CHECKSUM_BYTES

Digests: TypeAlias = Mapping[str, str]
"""128 bits of BLAKE2b (RFC 7693) in hexadecimal digits, by path relative to the folder of the index."""

_Stamp: TypeAlias = tuple[int, int, int]
"""Inode, modification time in nanoseconds, size."""

_UNCHECKED = ".lock"


def checksum(path: Path) -> str:
    """The checksum of the content of a file.

    :raises OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=CHECKSUM_BYTES)).hexdigest()


def damaged_files(folder: Path, digests: Digests) -> Iterator[Path]:
    """The files that are missing, cannot be read, or have a checksum mismatch."""
    for name, digest in digests.items():
        try:
            is_whole = checksum(folder / name) == digest
        except OSError:
            is_whole = False
        if not is_whole:
            yield folder / name


class CheckedFiles:
    """Checks the files of successive commits. A file that two of them have in common is read once.

    :param folder: of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[_Stamp, str] = {}

    def digests(self, paths: Iterable[Path], before: Digests) -> dict[str, str]:
        """The digests of the files of a new commit. A hard link to a file of the commit ``before`` has its digest.

        :raises Damaged: on a checksum mismatch of such a file.
        """
        inodes = {(self._folder / name).stat().st_ino: digest for name, digest in before.items()}
        digests = {}
        for path in sorted(path for path in paths if path.is_file() and path.suffix != _UNCHECKED):
            status = path.stat()
            stamp = _stamp(status)
            digest = self._known.get(stamp) or checksum(path)
            if inodes.get(status.st_ino, digest) != digest:
                raise _damaged(path)
            self._known[stamp] = digest
            digests[path.relative_to(self._folder).as_posix()] = digest
        return digests

    def check(self, digests: Digests) -> None:
        """Read the files of a commit that were not read before.

        :raises Damaged: on a checksum mismatch.
        :raises OSError: if one of them cannot be read.
        """
        stamps = {name: _stamp((self._folder / name).stat()) for name in digests}
        unread = [name for name, digest in digests.items() if self._known.get(stamps[name]) != digest]
        if unread:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = pool.map(checksum, [self._folder / name for name in unread])
                for name, digest in zip(unread, found, strict=True):
                    if digest != digests[name]:
                        raise _damaged(self._folder / name)
        self._known = {stamps[name]: digest for name, digest in digests.items()}


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _damaged(path: Path) -> Damaged:
    return Damaged(
        "the index is damaged: `trivium doctor` lists the files, `trivium rebuild` recovers the other documents",
        f"{path}: checksum mismatch",
    )
