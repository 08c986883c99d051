"""Files that appear whole or not at all, and are never changed afterwards."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace(path: Path, content: bytes, mode: int = 0o666, owner: tuple[int, int] | None = None) -> None:
    """Put ``content`` at ``path`` in one step that survives a power cut (write, sync, rename, sync the folder).

    :param mode: who may read and write the file, as far as the process' mask lets it.
    :param owner: its user and group, where they are not those of the process, which must be root's then.
    """
    draft = path.with_name(f"{path.name}.draft")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        if owner:
            os.fchown(file.fileno(), *owner)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync(path.parent)


def stamp(path: Path) -> tuple[int, int] | None:
    """What changes when a file is replaced by another; ``None`` where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ino


def sync(path: Path) -> None:
    """Wait until a file or a folder's entries are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until everything below ``folder`` is on disk."""
    for path in sorted(folder.rglob("*"), reverse=True):
        sync(path)
    sync(folder)


def share(source: Path, target: Path) -> None:
    """Make ``target`` the same unchanging file as ``source``: a hard link, or a copy where there are none."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the one writer's lock of a folder, across processes; it goes with the process, however that ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive_now(path: Path) -> Iterator[bool]:
    """Hold that lock if nobody else does: whether it is held."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
