"""Which generations there are, and which one is live: one file, which is replaced in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from adapters.model.errors import Damaged, Unavailable
from adapters.storage import checked_file, files
from adapters.storage.followed_file import FollowedFile

FOLDER = "generations"
"""Name of the folder in the data folder."""
_FILE = "generations.json"
BUILDING, PROGRESS = "backfill", "progress"
"""Name of the folder in that of a generation where it is built, and of a file in that of each shard."""
FIRST = 1
"""Version of the generation that the first documents are written to. Its folder is the data folder."""

State: TypeAlias = Literal["building", "complete", "dropping"]


class Generation(msgspec.Struct, frozen=True):
    """One generation.

    :param name: of its folder and of its indexes on servers.
    :param settings: by name, those that its documents were prepared with: a change of the environment does not change
        them.
    :param origin: the files that it is built from; empty: the documents of a generation.
    :param origin_state: size and time of each file, so that a changed one is noticed.
    :param origin_version: the generation that was live when this one was begun.
    :param shards: number of processes that share the encoding.
    :param batch: documents of a write.
    :param state: ``building`` until all documents have been written; ``dropping`` once some of it may be gone.
    :param changes_end: where the changes end that it has, in bytes from the beginning of the record of changes.
    :param left_at: when another one became live instead, in seconds since the epoch.
    """

    name: str
    version: int
    settings: Mapping[str, str]
    created_at: float
    origin: tuple[str, ...] = ()
    origin_state: tuple[str, ...] = ()
    origin_version: int = FIRST
    shards: int = 1
    batch: int = 0
    state: State = "complete"
    changes_end: int = 0
    left_at: float | None = None


class Generations(msgspec.Struct, frozen=True):
    """The content of the file.

    :param live: version of the generation that searches and writes use.
    :param known: all generations; the first one is missing until a document was written to it.
    :param last_version: the largest version that was ever given.
    """

    live: int = FIRST
    known: tuple[Generation, ...] = ()
    last_version: int = FIRST

    def get(self, version: int) -> Generation | None:
        """The generation of a version, if it is known."""
        return next((each for each in self.known if each.version == version), None)

    def require(self, version: int) -> Generation:
        """The generation of a version.

        :raises Unavailable: if it was dropped meanwhile.
        """
        if (found := self.get(version)) is None:
            raise Unavailable("another process has dropped the generation")
        return found

    @property
    def building(self) -> Generation | None:
        """The generation that is being built."""
        return next((each for each in self.known if each.state == "building"), None)

    @property
    def others(self) -> list[Generation]:
        """All but the live one."""
        return [each for each in self.known if each.version != self.live]

    def with_(self, generation: Generation) -> Generations:
        """The same with a new or a changed generation."""
        others = [each for each in self.known if each.version != generation.version]
        known = tuple(sorted([*others, generation], key=lambda each: each.version))
        return replace(self, known=known, last_version=max(self.last_version, generation.version))

    def without(self, version: int) -> Generations:
        """The same without a generation."""
        return replace(self, known=tuple(each for each in self.known if each.version != version))


class Catalog:
    """The generations of a data folder. Any process and thread may use it; the methods block.

    :param data_dir: the data folder, or that of one of its generations.
    """

    def __init__(self, data_dir: Path) -> None:
        is_generation = data_dir.parent.name == FOLDER and (data_dir.parent / _FILE).is_file()
        self.folder = data_dir.parent if is_generation else data_dir / FOLDER
        self.own_name = data_dir.name if is_generation else ""
        """The name of the generation whose folder ``data_dir`` is; empty for the first one."""
        self._file = FollowedFile(self.folder / _FILE, _read, Generations())

    def read(self) -> Generations:
        """The newest state.

        :raises Damaged: if the checksum does not match.
        """
        self._file.refresh()
        return self._file.value

    def own_version(self) -> int | None:
        """The version of the generation whose folder ``data_dir`` is; ``None`` if it was dropped."""
        if not self.own_name:
            return FIRST
        return next((each.version for each in self.read().known if each.name == self.own_name), None)

    def is_live(self) -> bool:
        """Whether that generation is live."""
        return self.own_version() == self.read().live

    def folder_of(self, generation: Generation) -> Path:
        """The data folder of a generation."""
        return self.folder.parent if generation.version == FIRST else self.folder / generation.name

    def last_progress(self, generation: Generation) -> float:
        """When a shard has last made progress in building a generation, in seconds since the epoch."""
        paths = (self.folder_of(generation) / BUILDING).glob(f"*/{PROGRESS}")
        return max((path.stat().st_mtime for path in paths), default=generation.created_at)

    def update(self, change: Callable[[Generations], Generations]) -> Generations:
        """Replace the state by what a function makes of it, while no other process changes it.

        :raises OSError: if it cannot be written; what the function raises; then nothing has changed.
        """
        files.ensure_folder(self.folder)
        with files.exclusive(self.folder / "catalog.lock"):
            before = self.read()
            after = change(before)
            if after != before:
                checked_file.write_json(self.folder / _FILE, after)
            return self.read()

    def writing(self) -> AbstractContextManager[None]:
        """Inside, documents of the live generation may be written, and no other generation becomes live."""
        files.ensure_folder(self.folder)
        return files.shared(self.folder / "writes.lock")

    def switching(self) -> AbstractContextManager[bool]:
        """Whether this process may bring generations up to date, and make one live: one process at a time may."""
        files.ensure_folder(self.folder)
        return files.exclusive_now(self.folder / "switch.lock")

    def without_writes(self) -> AbstractContextManager[None]:
        """Inside, no process writes documents of the live generation."""
        files.ensure_folder(self.folder)
        return files.exclusive(self.folder / "writes.lock")


def _read(path: Path) -> Generations:
    try:
        return checked_file.read_json(path, Generations)
    except msgspec.ValidationError as error:
        raise Damaged("the list of generations was written by another release", f"{path}: {error}") from error
