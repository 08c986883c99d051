"""The metadata keys of each tenant and environment. Their number is limited: each is a column of the index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from adapters import Damaged, Scope, Unavailable, checked_file, files
from adapters.fingerprint import fingerprint
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine

MAX_METADATA_KEYS = 10_000
"""Maximum number of different metadata keys in all documents of a tenant and environment, and so of a collection."""
_SUFFIX = ".keys"


class MetadataKeys:
    """The keys, in a file for each tenant and environment. All methods block; any thread and process may call them.

    A key counts for good, like a field in a mapping of OpenSearch: deleted documents are not counted back.

    :raises Damaged: if a file is not what was written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files.ensure_folder(folder)
        self._known = {path.name: _read(path) for path in folder.glob(f"*{_SUFFIX}")}
        """By file; other processes may have added keys since."""

    def checked(self, lines: Sequence[ParsedLine], scope: Scope) -> Sequence[ParsedLine]:
        """The lines; one whose document would add a key too many is invalid. The keys of the others are added.

        :raises Damaged: if the file is not what was written.
        :raises Unavailable: if it cannot be written.
        """
        path = self._folder / f"{fingerprint(scope.tenant, scope.environment)}{_SUFFIX}"
        known = self._known.get(path.name, frozenset())
        if all(known.issuperset(line.document.metadata) for line in lines if isinstance(line, ValidLine)):
            return lines
        try:
            with files.exclusive(self._folder / "lock"):
                keys = set(_read(path))
                count = len(keys)
                checked = [_checked(line, keys) if isinstance(line, ValidLine) else line for line in lines]
                if len(keys) > count:
                    checked_file.write(path, msgspec.msgpack.encode(sorted(keys)))
        except OSError as error:
            raise Unavailable("the metadata keys cannot be written", f"{self._folder}: {error}") from error
        self._known[path.name] = frozenset(keys)
        return checked


def _checked(line: ValidLine, keys: set[str]) -> ParsedLine:
    """The line, its keys added; or why there is no place for them."""
    added = line.document.metadata.keys() - keys
    if added and len(keys) + len(added) > MAX_METADATA_KEYS:
        return InvalidLine(
            line.line,
            f"metadata: {min(added)[:40]!r} is not one of the {len(keys)} keys that this tenant's documents have, "
            f"allowed are {MAX_METADATA_KEYS} - at `$.metadata`",
        )
    keys |= added
    return line


def _read(path: Path) -> frozenset[str]:
    try:
        return frozenset(msgspec.msgpack.decode(checked_file.read(path), type=list[str]))
    except FileNotFoundError:
        return frozenset()
    except Damaged as error:
        raise Damaged("a list of metadata keys is damaged: remove its file", error.detail) from error
