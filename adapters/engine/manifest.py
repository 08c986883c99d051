"""The small file that names the files of the current commit, with their checksums."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from adapters.model.errors import Damaged
from adapters.storage import checked_file

_NAME = "manifest.json"
COPIES = "manifests"
"""Folder with a copy of the manifest of each existing commit, for :mod:`adapters.engine.salvage`."""


class Manifest(msgspec.Struct, frozen=True):
    """One commit. Generations count from 1; 0 is an empty index, which has no files.

    :param rows: number of rows of each segment, deleted ones included.
    :param files: checksums by path relative to the folder of the index.
    """

    generation: int
    build_id: str
    segments: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    next_docno: int = 0
    documents: int = 0
    optimized: bool = False
    """Whether nothing was written since all segments were merged."""
    files: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """The name of this commit's files."""
        return f"{self.generation:012d}"

    @classmethod
    def read(cls, folder: Path, build_id: str) -> Manifest:
        """The current manifest of ``folder``; where there is none, that of an empty index of ``build_id``.

        :raises Damaged: on a checksum mismatch; also if it is missing while there are copies.
        """
        try:
            return _read(folder / _NAME)
        except FileNotFoundError:
            if next((folder / COPIES).glob("*.json"), None):
                message = f"{_NAME} of the index is missing: `trivium rebuild` makes it again from its newest copy"
                raise Damaged(message, str(folder)) from None
            return cls(0, build_id)

    @classmethod
    def copies(cls, folder: Path) -> list[Manifest]:
        """The manifests of the existing commits, the newest first. A damaged copy is left out."""
        found = []
        for path in sorted((folder / COPIES).glob("*.json"), reverse=True):
            try:
                found.append(_read(path))
            except Damaged:
                continue
        return found

    @staticmethod
    def damaged(folder: Path) -> list[Path]:
        """The paths of the manifest and its copies that are damaged."""
        damaged = []
        for path in sorted([*folder.glob(_NAME), *(folder / COPIES).glob("*.json")]):
            try:
                _read(path)
            except Damaged:
                damaged.append(path)
        return damaged

    def write(self, folder: Path) -> None:
        """Make this the current manifest: the step that publishes a commit."""
        if not (folder / _NAME).exists():  # so that copies without it are not what a crash in the first write leaves
            checked_file.write_json(folder / _NAME, Manifest(0, self.build_id))
        (folder / COPIES).mkdir(exist_ok=True)
        checked_file.write_json(folder / COPIES / f"{self.name}.json", self)
        checked_file.write_json(folder / _NAME, self)


def _read(path: Path) -> Manifest:
    try:
        return checked_file.read_json(path, Manifest)
    except msgspec.ValidationError as error:
        raise Damaged("the index was written by another release: index again", f"{path}: {error}") from error
