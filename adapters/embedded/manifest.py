"""The one small file that says which version of a library is current."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adapters import files
from adapters.errors import Unavailable

_NAME = "manifest.json"


class Manifest(msgspec.Struct, frozen=True):
    """A version, counted from 1; 0 is the empty library that has no file yet."""

    version: int
    index_version: str
    segments: tuple[str, ...] = ()
    next_docno: int = 0
    documents: int = 0
    optimized: bool = False
    """Nothing was written since everything was put into one piece."""

    @property
    def name(self) -> str:
        """What the files of this version are called."""
        return f"{self.version:012d}"

    @classmethod
    def read(cls, folder: Path, index_version: str) -> Manifest:
        """The current one of ``folder``; where there is none, that of an empty library of ``index_version``.

        :raises Unavailable: if it cannot be read.
        """
        try:
            found = msgspec.json.decode((folder / _NAME).read_bytes(), type=cls)
        except FileNotFoundError:
            return cls(0, index_version)
        except msgspec.DecodeError as error:
            raise Unavailable(f"{folder / _NAME} is damaged: {error}") from error
        return found

    def write(self, folder: Path) -> None:
        """Make this the current one: the step that publishes a version."""
        files.replace(folder / _NAME, msgspec.json.encode(self))
