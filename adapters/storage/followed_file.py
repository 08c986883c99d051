"""A value that is decoded from a file, and decoded again whenever the file is replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from adapters.storage.files import FileStamp, file_stamp

T = TypeVar("T")


class FollowedFile(Generic[T]):
    """The decoded content of the file at ``path``.

    The value is ``missing`` until the first :meth:`refresh`, and whenever the last refresh found no file. It is
    replaced in one assignment, so that a reader in another thread never sees half of a change.

    :param decode: reads the file at a path. What it raises, :meth:`refresh` raises.
    """

    def __init__(self, path: Path, decode: Callable[[Path], T], missing: T) -> None:
        self.path = path
        self.value = missing
        self._decode = decode
        self._missing = missing
        self._stamp: FileStamp | None = None

    def refresh(self) -> bool:
        """Decode the file if it was replaced, created or deleted since the last refresh that succeeded.

        :returns: whether it was. If decoding fails, the value stays as it was, and the next refresh tries again.
        """
        stamp = file_stamp(self.path)
        if stamp == self._stamp:
            return False
        self.value = self._missing if stamp is None else self._decode(self.path)
        self._stamp = stamp
        return True
