"""The files in folders that have documents, and how many others there are, by reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob, has_magic
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from stat import S_ISREG
from typing import Literal, NamedTuple, TypeAlias

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
_DIGEST_CHARS = 16
MAX_FILE_BYTES = 33_554_432
"""Larger files are not read."""


class NoFiles(ValueError):
    """A path leads to nothing that can be indexed; the message says what is there, and what to do."""


TEXT_STEMS = frozenset(["readme", "license", "licence", "copying", "notice", "authors", "changelog", "changes", "news"])
"""Names of texts whatever follows: ``README.Debian``."""
_BROKEN, _BAD_NAME = "broken links and special files", "files whose name is no UTF-8"
_OUTSIDE = "symbolic links out of the folder"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file.

    :param id: of its document: the path from the parent of the folder that was named, with ``/``.
    :param root: a digest of the path of that folder, which tells folders of the same name apart.
    """

    path: Path
    id: str
    format: Format
    root: str

    @property
    def folder(self) -> str:
        """The name of the folder that was named."""
        return folder_in(self.id)


@dataclass(slots=True)
class FoundFiles:
    """The files to read, ordered by id.

    :param roots: of the folders that were searched as a whole, by name.
    :param left_out: number of other files by reason.
    :param others: ids of files that are left out, so that a link to one is not taken for a mistake.
    :param unreadable: ids of files and folders that cannot be read, with the reason.
    """

    files: list[FoundFile] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    others: set[str] = field(default_factory=set)
    unreadable: dict[str, str] = field(default_factory=dict)

    def may_have(self, id_: str) -> bool:
        """Whether a file may be there although it was not found: below a folder that cannot be read."""
        return any(id_ == each or id_.startswith(f"{each}/") for each in self.unreadable)


class NamedPath(NamedTuple):
    """A file or folder that is to be read, and the folder that its id begins with."""

    path: Path
    base: Path


def expanded(paths: Sequence[str]) -> list[NamedPath]:
    """The paths, with the files that match a pattern such as ``docs/**/*.md`` in its place.

    :raises NoFiles: if nothing is at a path, or matches a pattern.
    """
    found: list[NamedPath] = []
    for path in paths:
        if (here := Path(path)).exists():
            found.append(NamedPath(here, here if here.is_dir() else here.resolve().parent))
        elif has_magic(path) and (matches := sorted(glob(path, recursive=True))):  # noqa: PTH207, absolute or not
            steps = Path(path).parts
            base = Path(*takewhile(lambda step: not has_magic(step), steps))
            found += [NamedPath(each, base) for match in matches if (each := Path(match)).is_file()]
        elif has_magic(path):
            raise NoFiles(f"no file matches {path}")
        else:
            parent = here.parent
            near = nearest(here.name, (each.name for each in parent.iterdir())) if parent.is_dir() else ""
            hint = f"; the nearest is {here.with_name(near)}" if near else ""
            raise NoFiles(f"there is no file {path}{hint}")
    return found


def find(paths: Iterable[NamedPath], data_dir: Path | None = None) -> FoundFiles:
    """The files of folders, and files that are named themselves. Blocks.

    Hidden files and folders, symbolic links that lead out of the folder or to other folders, and files of other formats
    are left out.

    :param data_dir: a folder of the index itself, which is not searched.
    :raises NoFiles: if two folders have the same name, or a path is within the folder of the index.
    """
    excluded = data_dir.resolve() if data_dir else None
    found = FoundFiles()
    bases: dict[str, Path] = {}
    by_id: dict[str, FoundFile] = {}
    named = [(_real(path), base.resolve()) for path, base in paths]
    folders = [path for path, _ in named if path.is_dir()]
    for path, own_base in named:
        if excluded is not None and path.is_relative_to(excluded):
            raise NoFiles(f"{path} is in the data folder of the index, which TRIVIUM_DATA_DIR names")
        within = [each for each in folders if path.is_relative_to(each)]
        outer = min(within, key=lambda each: len(each.parts), default=None)
        base = outer or own_base
        if (other := bases.setdefault(base.name, base)) != base:
            raise NoFiles(f"{other} and {base} have the same name: index them into two collections (--collection)")
        root = sha256(str(base).encode("utf-8", "surrogateescape")).hexdigest()[:_DIGEST_CHARS]
        if path.is_dir():
            if path != outer:
                continue  # a part of another folder
            found.roots[base.name] = root
            files = _in_folder(base, root, found, excluded)
        elif not path.is_relative_to(base):
            found.left_out[_OUTSIDE] += 1
            continue
        else:
            id_ = f"{base.name}/{path.relative_to(base).as_posix()}"
            files = iter([FoundFile(path, id_, format_of(path) or "text", root)])
        for file in files:
            by_id.setdefault(file.id, file)
    found.files = [by_id[id_] for id_ in sorted(by_id)]
    return found


def folder_in(id_: str) -> str:
    """The name of the folder that an id begins with."""
    return id_.partition("/")[0]


def format_of(path: Path) -> Format | None:
    """The format by the name; ``None`` for another one. A name without an end may be that of a text."""
    if path.stem.lower() in TEXT_STEMS:
        return FORMATS.get(path.suffix.lower(), "text")
    return FORMATS.get(path.suffix.lower()) if path.suffix else "text"


def _in_folder(base: Path, root: str, found: FoundFiles, excluded: Path | None) -> Iterator[FoundFile]:
    def id_of(path: str | Path) -> str:
        return f"{base.name}/{Path(path).relative_to(base).as_posix()}"

    def fail(error: OSError) -> None:
        found.unreadable[id_of(error.filename)] = error.strerror or str(error)

    for folder, folders, names in os.walk(base, onerror=fail):
        visible = [name for name in sorted(folders) if not name.startswith(".")]
        found.left_out["hidden folders"] += len(folders) - len(visible)
        links = [name for name in visible if Path(folder, name).is_symlink()]
        found.left_out["symbolic links to folders"] += len(links)
        folders[:] = [name for name in visible if name not in links and Path(folder, name) != excluded]
        for name in names:
            path = Path(folder, name)
            try:
                reason = _why_left_out(path, base)
            except PermissionError as error:
                found.unreadable[id_of(path)] = error.strerror or str(error)
                continue
            except OSError:  # it has vanished
                reason = _BROKEN
            if reason:
                found.left_out[reason] += 1
                found.others.add(id_of(path))
            elif kind := format_of(path):
                yield FoundFile(path, id_of(path), kind, root)


def _why_left_out(path: Path, base: Path) -> str:
    """The reason not to read a file; empty if there is none.

    :raises OSError: if it cannot be examined.
    """
    if path.name.startswith("."):
        return "hidden files"
    if not _is_utf_8(str(path.relative_to(base))):
        return _BAD_NAME
    if format_of(path) is None:
        return f"{path.suffix.lower()} files"
    if path.is_symlink() and not _leads_within(path, base):
        return _OUTSIDE
    mode = path.stat()
    if not S_ISREG(mode.st_mode):
        return _BROKEN
    if mode.st_size > MAX_FILE_BYTES:
        return f"files of more than {MAX_FILE_BYTES // 2**20} MiB"
    return ""


def _real(path: Path) -> Path:
    """The path without links in it, but for the file itself."""
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def _is_utf_8(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _leads_within(link: Path, base: Path) -> bool:
    try:
        return link.resolve().is_relative_to(base)
    except RuntimeError:  # a loop, on CPython 3.11 and 3.12; others raise an OSError later
        raise OSError(f"{link} is a loop of links") from None
