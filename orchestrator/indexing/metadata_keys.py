"""The metadata keys of each tenant and environment. Their number is limited: each is a column of the index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from adapters import Damaged, Scope, Unavailable
from adapters.servers.fingerprints import fingerprint
from adapters.storage import checked_file, files
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine

MAX_METADATA_KEYS = 10_000
"""Maximum number of different metadata keys in all documents of a tenant and environment, and so of a collection."""
_SUFFIX = ".keys"


class MetadataKeys:
    """The keys, in a file for each tenant and environment. All methods block; any thread and process may call them.

    A key still counts after its documents were deleted, like a field in a mapping of OpenSearch.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files.ensure_folder(folder)
        self._known: dict[str, frozenset[str]] = {}
        """The keys by file, as it was last read; other processes may have added keys since."""

    def checked(self, lines: Sequence[ParsedLine], scope: Scope) -> Sequence[ParsedLine]:
        """Returns the lines. A line whose document would exceed the limit is invalid; the keys of the others are added.

        :raises Damaged: if the checksum of the file does not match.
        :raises Unavailable: if it cannot be read or written.
        """
        name = fingerprint(scope.tenant, scope.environment)
        known = self._known.get(name, frozenset())
        if all(known.issuperset(line.document.metadata) for line in lines if isinstance(line, ValidLine)):
            return lines
        if len(known) >= MAX_METADATA_KEYS:  # the number never shrinks
            return _all_checked(lines, set(known))
        path = self._folder / f"{name}{_SUFFIX}"
        try:
            with files.exclusive(path.with_suffix(".lock")):
                keys = _read(path)
                count = len(keys)
                checked = _all_checked(lines, keys)
                if len(keys) > count:
                    checked_file.write(path, msgspec.msgpack.encode(sorted(keys)))
        except OSError as error:
            raise Unavailable("the metadata keys cannot be read or written", f"{self._folder}: {error}") from error
        self._known[name] = frozenset(keys)
        return checked

    def keys(self, scope: Scope) -> frozenset[str]:
        """The keys of all documents of a scope that this process, or another one with this folder, has ever written.
        Blocks.

        :raises Damaged: if the checksum of the file does not match.
        :raises Unavailable: if it cannot be read.
        """
        name = fingerprint(scope.tenant, scope.environment)
        try:
            return self._known.get(name, frozenset()) | _read(self._folder / f"{name}{_SUFFIX}")
        except OSError as error:
            raise Unavailable("the metadata keys cannot be read", f"{self._folder}: {error}") from error

    def damaged(self) -> list[str]:
        """The files whose checksum does not match."""
        return sorted(str(path) for path in self._folder.glob(f"*{_SUFFIX}") if checked_file.is_damaged(path))


def _all_checked(lines: Sequence[ParsedLine], keys: set[str]) -> list[ParsedLine]:
    return [_checked(line, keys) if isinstance(line, ValidLine) else line for line in lines]


def _checked(line: ValidLine, keys: set[str]) -> ParsedLine:
    """Add the keys of a line and return it, or return the error if there would be too many."""
    added = line.document.metadata.keys() - keys
    if added and len(keys) + len(added) > MAX_METADATA_KEYS:
        return InvalidLine(
            line.line,
            f"metadata: {min(added)[:40]!r} is not one of the {len(keys)} keys that this tenant's documents have, "
            f"allowed are {MAX_METADATA_KEYS} - at `$.metadata`",
        )
    keys |= added
    return line


def _read(path: Path) -> set[str]:
    try:
        return set(msgspec.msgpack.decode(checked_file.read(path), type=list[str]))
    except FileNotFoundError:
        return set()
    except Damaged as error:
        raise Damaged("the list of this tenant's metadata keys is damaged", error.detail) from error
