"""Files that are written completely or not at all, and never changed afterwards."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

FileStamp: TypeAlias = tuple[int, int]
"""Modification time in nanoseconds, and inode."""


def replace(path: Path, content: bytes, mode: int = 0o666, owner: tuple[int, int] | None = None) -> None:
    """Put ``content`` at ``path`` in one step that survives a power cut (write, sync, rename, sync the folder).

    :param mode: permissions of the file, reduced by the umask of the process.
    :param owner: user id and group id of the file. By default those of the process; setting others requires root.
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


def file_stamp(path: Path) -> FileStamp | None:
    """A value that differs once a file is replaced by another; ``None`` if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def sync(path: Path) -> None:
    """Wait until a file, or the list of files of a folder, is on disk."""
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


def size_bytes(path: Path) -> int:
    """Size of a file, or of all files in a folder; 0 if there is none."""
    paths = path.rglob("*") if path.is_dir() else [path]
    return sum(each.lstat().st_size for each in paths if each.is_file())


def disk_bytes(folder: Path) -> tuple[int, int]:
    """Bytes for new files in a folder, and of its disk; 0 and 0 if it does not exist."""
    try:
        usage = shutil.disk_usage(folder)
    except FileNotFoundError:
        return 0, 0
    return usage.free, usage.total


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file that never changes at a second path: by a hard link, or by a copy where links are not supported."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def ensure_folder(folder: Path) -> None:
    """Create a folder that only its owner may read, unless it exists.

    On a read-only disk it stays absent: a process that only reads finds nothing there until another one has written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock ``path`` against all other processes, waiting for the lock. It is released when the process ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Lock ``path`` against :func:`exclusive`, not against others that share it, waiting for the lock."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def exclusive_now(path: Path) -> Iterator[bool]:
    """Lock ``path`` as :func:`exclusive` does, but without waiting: ``False`` if another process has the lock."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
