"""The metadata keys of each tenant and environment. Their number is limited: each is a column of the index."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio.to_thread
import msgspec

from adapters import Damaged, Scope, Unavailable
from adapters.model.batching import batches
from adapters.servers.fingerprints import fingerprint
from adapters.storage import checked_file, files
from adapters.storage.followed_file import FollowedFile
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine

KEYS_FOLDER = "metadata-keys"
"""Name of their folder in the data folder."""
MAX_METADATA_KEYS = 10_000
"""Maximum number of different metadata keys in all documents of a tenant and environment, and so of a collection."""
_SUFFIX = ".keys"
_MAX_COUNTED_TOGETHER = 100
"""Keys that are looked for in one query while the file is locked."""


class _Stored(msgspec.Struct, frozen=True):
    """The content of a file; the scope, because the name of the file is a hash of it."""

    tenant: str = ""
    environment: str = ""
    keys: frozenset[str] = frozenset()


class MetadataKeys:
    """The keys, in a file for each tenant and environment. Any thread and process may call the methods, which block.

    A key counts until :meth:`recount` finds no document that has it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files.ensure_folder(folder)
        self._files: dict[str, FollowedFile[_Stored]] = {}

    def checked(self, lines: Sequence[ParsedLine], scope: Scope) -> Sequence[ParsedLine]:
        """Returns the lines. A line whose document would exceed the limit is invalid; the keys of the others are added.

        :raises Damaged: if the checksum of the file does not match.
        :raises Unavailable: if it cannot be read or written.
        """
        followed = self._followed(scope)
        with suppress(Damaged, OSError):  # then what was read before is in use, as long as it is enough
            followed.refresh()
        known = set(followed.value.keys)
        if all(known.issuperset(line.document.metadata) for line in lines if isinstance(line, ValidLine)):
            return lines
        if len(known) >= MAX_METADATA_KEYS:
            return _all_checked(lines, known)
        with self._exclusive(scope) as path:
            before = _read(path).keys
            keys = set(before)
            checked = _all_checked(lines, keys)
            if keys != before:
                _write(path, scope, keys)
            followed.refresh()
        return checked

    def add(self, keys: Collection[str], scope: Scope) -> None:
        """Add the keys of documents that were just written: a recount that did not see them may have removed some.

        :raises Damaged: if the checksum of the file does not match.
        :raises Unavailable: if it cannot be read or written.
        """
        with self._exclusive(scope) as path:
            before = _read(path).keys
            if not before.issuperset(keys):
                _write(path, scope, before.union(keys))

    def keys(self, scope: Scope) -> frozenset[str]:
        """The keys of all documents of a scope that were written to this folder.

        :raises Damaged: if the checksum of the file does not match.
        :raises Unavailable: if it cannot be read.
        """
        followed = self._followed(scope)
        try:
            followed.refresh()
        except OSError as error:
            raise Unavailable("the metadata keys cannot be read", f"{self._folder}: {error}") from error
        return followed.value.keys

    async def recount(self, has_documents: Callable[[Scope, Sequence[str]], Awaitable[bool | None]]) -> None:
        """Remove the keys that no document has.

        :param has_documents: whether a document of a scope has one of some keys, every write that has ended included;
            ``None`` if that is not known.
        :raises Damaged: if the checksum of a file does not match.
        :raises Unavailable: if one cannot be read or written.
        """
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            stored = await anyio.to_thread.run_sync(_read, path)
            scope = Scope(stored.tenant, stored.environment)
            unused = [key for key in sorted(stored.keys) if await has_documents(scope, [key]) is False]
            if not unused:
                continue
            # A write adds its keys again when it has ended, for which it waits for this lock.
            with files.exclusive_now(_lock(path)) as has_lock:
                removed: set[str] = set()
                for each in batches(unused, _MAX_COUNTED_TOGETHER) if has_lock else ():
                    if await has_documents(scope, each) is False:
                        removed.update(each)
                if removed:
                    await anyio.to_thread.run_sync(_remove, path, scope, removed)

    def damaged(self) -> list[str]:
        """The files whose checksum does not match."""
        return sorted(str(path) for path in self._folder.glob(f"*{_SUFFIX}") if checked_file.is_damaged(path))

    def _followed(self, scope: Scope) -> FollowedFile[_Stored]:
        path = self._path(scope)
        return self._files.setdefault(path.name, FollowedFile(path, _read, _Stored()))

    def _path(self, scope: Scope) -> Path:
        return self._folder / f"{fingerprint(scope.tenant, scope.environment)}{_SUFFIX}"

    @contextmanager
    def _exclusive(self, scope: Scope) -> Iterator[Path]:
        path = self._path(scope)
        try:
            with files.exclusive(_lock(path)):
                yield path
        except OSError as error:
            raise Unavailable("the metadata keys cannot be read or written", f"{self._folder}: {error}") from error


def _lock(path: Path) -> Path:
    return path.with_suffix(".lock")


def _all_checked(lines: Sequence[ParsedLine], keys: set[str]) -> list[ParsedLine]:
    return [_checked(line, keys) if isinstance(line, ValidLine) else line for line in lines]


def _checked(line: ValidLine, keys: set[str]) -> ParsedLine:
    """Add the keys of a line and return it, or return the error if there would be too many."""
    added = line.document.metadata.keys() - keys
    if added and len(keys) + len(added) > MAX_METADATA_KEYS:
        return InvalidLine(
            line.line,
            f"metadata: {min(added)[:40]!r} is not one of the {len(keys)} keys that this tenant's documents have, "
            f"allowed are {MAX_METADATA_KEYS}",
        )
    keys |= added
    return line


def _read(path: Path) -> _Stored:
    try:
        return checked_file.read_json(path, _Stored)
    except FileNotFoundError:
        return _Stored()
    except Damaged as error:
        raise Damaged("the list of this tenant's metadata keys is damaged", error.detail) from error


def _write(path: Path, scope: Scope, keys: Collection[str]) -> None:
    checked_file.write_json(path, {"tenant": scope.tenant, "environment": scope.environment, "keys": sorted(keys)})


def _remove(path: Path, scope: Scope, keys: set[str]) -> None:
    try:
        _write(path, scope, _read(path).keys - keys)
    except OSError as error:
        raise Unavailable("the metadata keys cannot be read or written", f"{path}: {error}") from error
