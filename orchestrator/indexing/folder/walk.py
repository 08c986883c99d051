"""The files in folders that have documents, and how many others there are, by reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from typing import Literal, TypeAlias

from adapters.model.spelling import nearest

Format: TypeAlias = Literal["markdown", "html", "rst", "text", "code", "pdf"]

_SUFFIXES: Mapping[Format, str] = {
    "markdown": "md markdown mdown mkd mdx",
    "html": "html htm xhtml",
    "rst": "rst rest",
    "text": "txt text adoc asciidoc org tex textile wiki",
    "code": "bash bat c cc cfg cjs clj cmake conf cpp cs cxx dart el erl ex exs fish go gradle graphql h hpp hs ini "
    "java jl js jsx kt kts lisp lua m mjs ml mm nim php pl pm proto ps1 py pyi pyx r rb rs scala sh sql svelte swift "
    "tf toml ts tsx vim vue yaml yml zig zsh",
    "pdf": "pdf",
}
FORMATS: Mapping[str, Format] = {
    f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
"""The format of a file by the end of its name, in lower case. A file whose name has no end may be a text."""
MAX_FILE_BYTES = 33_554_432
"""Larger files are not read."""


class NoFiles(ValueError):
    """A path leads to nothing that can be indexed; the message says what is there, and what to do."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file.

    :param id: of its document: the path from the parent of the folder that was named, with ``/``.
    """

    path: Path
    id: str
    format: Format

    @property
    def folder(self) -> str:
        """The name of the folder that was named."""
        return self.id.partition("/")[0]


@dataclass(slots=True)
class FoundFiles:
    """The files to read, ordered by id.

    :param folders: names of the folders that were searched as a whole.
    :param left_out: number of other files by reason.
    :param others: ids of files that are left out, so that a link to one is not taken for a mistake.
    """

    files: list[FoundFile] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    others: set[str] = field(default_factory=set)


def expanded(paths: Sequence[str]) -> list[Path]:
    """The paths, with those that match a pattern such as ``docs/**/*.md`` in its place.

    :raises NoFiles: if nothing is at a path, or matches a pattern.
    """
    found: list[Path] = []
    for path in paths:
        if Path(path).exists():
            found.append(Path(path))
        elif has_magic(path) and (matches := sorted(glob(path, recursive=True))):  # noqa: PTH207, absolute or not
            found += [each for match in matches if (each := Path(match)).is_file()]
        elif has_magic(path):
            raise NoFiles(f"no file matches {path}")
        else:
            parent = Path(path).parent
            near = nearest(Path(path).name, (each.name for each in parent.iterdir())) if parent.is_dir() else ""
            hint = f"; the nearest is {Path(path).with_name(near)}" if near else ""
            raise NoFiles(f"there is no file {path}{hint}")
    return found


def find(paths: Iterable[Path], data_dir: Path | None = None) -> FoundFiles:
    """The files of folders, and files that are named themselves. Blocks.

    Hidden files and folders, symbolic links that lead out of the folder or to other folders, and files of other formats
    are left out.

    :param data_dir: a folder of the index itself, which is not searched.
    :raises NoFiles: if two files would have the same id.
    """
    found = FoundFiles()
    by_id: dict[str, FoundFile] = {}
    for path in paths:
        root = path.resolve()
        if root.is_dir():
            found.folders.add(root.name)
            files = _in_folder(root, found, data_dir.resolve() if data_dir else None)
        else:
            files = iter([FoundFile(root, f"{root.parent.name}/{root.name}", format_of(root) or "text")])
        for file in files:
            if (other := by_id.setdefault(file.id, file)).path != file.path:
                raise NoFiles(
                    f"{other.path} and {file.path} would both be {file.id}: index them into two collections, or name "
                    "the folder that has both"
                )
    found.files = [by_id[id_] for id_ in sorted(by_id)]
    return found


def format_of(path: Path) -> Format | None:
    """The format by the name; ``None`` for another one. A name without an end may be that of a text."""
    return FORMATS.get(path.suffix.lower()) if path.suffix else "text"


def _in_folder(root: Path, found: FoundFiles, excluded: Path | None) -> Iterator[FoundFile]:
    def fail(error: OSError) -> None:
        found.left_out[f"folders that cannot be read, such as {error.filename}"] += 1

    for folder, folders, names in os.walk(root, onerror=fail):
        visible = [name for name in sorted(folders) if not name.startswith(".")]
        found.left_out["hidden folders"] += len(folders) - len(visible)
        links = [name for name in visible if Path(folder, name).is_symlink()]
        found.left_out["symbolic links to folders"] += len(links)
        folders[:] = [name for name in visible if name not in links and Path(folder, name) != excluded]
        for name in names:
            path = Path(folder, name)
            id_ = f"{root.name}/{path.relative_to(root).as_posix()}"
            if reason := _why_left_out(path, root):
                found.left_out[reason] += 1
                found.others.add(id_)
            elif kind := format_of(path):
                yield FoundFile(path, id_, kind)


def _why_left_out(path: Path, root: Path) -> str:
    """The reason not to read a file; empty if there is none."""
    if path.name.startswith("."):
        return "hidden files"
    if format_of(path) is None:
        return f"{path.suffix.lower()} files"
    if path.is_symlink() and not path.resolve().is_relative_to(root):
        return "symbolic links out of the folder"
    if not path.is_file():
        return "broken links and special files"
    if path.stat().st_size > MAX_FILE_BYTES:
        return f"files of more than {MAX_FILE_BYTES // 2**20} MiB"
    return ""
