"""The one small file that names the files of the current commit."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adapters import files
from adapters.errors import Unavailable

_NAME = "manifest.json"


class Manifest(msgspec.Struct, frozen=True, rename={"generation": "version", "build_id": "index_version"}):
    """One commit. Generations count from 1; 0 is the empty index that has no file yet."""

    generation: int
    build_id: str
    segments: tuple[str, ...] = ()
    next_docno: int = 0
    documents: int = 0
    optimized: bool = False
    """Whether nothing was written since all segments were merged."""

    @property
    def name(self) -> str:
        """The name of this commit's files."""
        return f"{self.generation:012d}"

    @classmethod
    def read(cls, folder: Path, build_id: str) -> Manifest:
        """The current manifest of ``folder``; where there is none, that of an empty index of ``build_id``.

        :raises Unavailable: if it cannot be read.
        """
        try:
            return msgspec.json.decode((folder / _NAME).read_bytes(), type=cls)
        except FileNotFoundError:
            return cls(0, build_id)
        except msgspec.DecodeError as error:
            raise Unavailable("the index is damaged", f"{folder / _NAME}: {error}") from error

    def write(self, folder: Path) -> None:
        """Make this the current manifest: the step that publishes a commit."""
        files.replace(folder / _NAME, msgspec.json.encode(self))
