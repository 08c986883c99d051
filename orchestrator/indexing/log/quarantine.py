"""Documents that an available replica refuses: stored until they are overwritten, deleted, or accepted.

Each one is a file, named after its replica, its tenant and its key. An entry is the newest write of its document: when
the replica accepts a newer one, the entry is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from adapters import Viewer
from adapters.model.document import hidden_keys
from adapters.model.errors import Damaged
from adapters.ports.replica import Key
from adapters.servers.fingerprints import fingerprint
from adapters.storage import checked_file, files
from orchestrator.indexing.log.write import Write

_log = logging.getLogger(__name__)

_ENTRY = ".entry"
_DAMAGED = ".damaged"
MAX_TENANT_BYTES = 64 * 1024 * 1024
"""Maximum size of the entries of a tenant; the oldest are removed, so that one tenant cannot fill the disk."""

_encode = msgspec.msgpack.Encoder().encode


class Quarantined(msgspec.Struct, frozen=True):
    """A document, or the deletion of one, that a replica refused.

    :param sequence: of the write that it was part of.
    :param reason: why the replica refused it.
    :param write: the document with its vector, or the key to delete; nothing else.
    """

    replica: str
    sequence: int
    reason: str
    write: Write

    @property
    def key(self) -> Key:
        """The key of the document."""
        return self.write.keys[0]


_decode = msgspec.msgpack.Decoder(Quarantined).decode


class Quarantine:
    """The entries in a folder. It caches nothing, so all processes see the same; all methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files.ensure_folder(folder)

    def add(self, entries: Collection[Quarantined]) -> None:
        """Store entries; each replaces an older one of the same replica and document.

        :raises OSError: if they cannot be written; then some may be stored.
        """
        for entry in entries:
            checked_file.write(self._path(entry.replica, entry.key), _encode(entry))
        for replica, tenant in {(entry.replica, entry.key[0]) for entry in entries}:
            self._limit(replica, tenant)

    def _limit(self, replica: str, tenant: str) -> None:
        paths = sorted(self._folder.glob(f"{_prefix(replica, tenant)}*{_ENTRY}"), key=lambda path: path.stat().st_mtime)
        excess = sum(path.stat().st_size for path in paths) - MAX_TENANT_BYTES
        for path in paths:
            if excess <= 0:
                return
            excess -= path.stat().st_size
            path.unlink(missing_ok=True)
            _log.error("%s: quarantined document removed, its tenant has more than %d bytes", path, MAX_TENANT_BYTES)

    def release(self, replica: str, keys: Iterable[Key]) -> None:
        """Remove the entries of these documents: the replica has accepted a newer write of each."""
        if any(self._paths()):
            for key in keys:
                self._path(replica, key).unlink(missing_ok=True)

    def entries(self) -> list[Quarantined]:
        """All entries, the oldest write first. A damaged one is set aside, see :meth:`damaged`."""
        found = (self._read(path) for path in list(self._paths()))
        return sorted((entry for entry in found if entry), key=lambda entry: (entry.sequence, entry.key))

    def reasons(self, sequence: int, keys: Iterable[Key], replicas: Collection[str]) -> dict[Key, dict[str, str]]:
        """Why documents of a write are quarantined, by document and replica."""
        by_document: dict[Key, dict[str, str]] = {}
        existing = {path.name for path in self._paths()}
        if not existing:
            return by_document
        for key in keys:
            for replica in replicas:
                path = self._path(replica, key)
                if path.name in existing and (entry := self._read(path)) and entry.sequence == sequence:
                    by_document.setdefault(key, {})[replica] = entry.reason
        return by_document

    def hidden(self, replica: str, keys: Iterable[Key], viewer: Viewer) -> frozenset[Key]:
        """The documents among these that a replica refused and that a viewer may not see."""
        if not any(self._paths()):
            return frozenset()
        entries = (self._read(self._path(replica, key)) for key in keys)
        return hidden_keys((record for entry in entries if entry for record in entry.write.records), viewer)

    def contains(self, key: Key, replicas: Iterable[str]) -> bool:
        """Whether one of these replicas refused a document."""
        return any(self._path(replica, key).exists() for replica in replicas)

    def damaged(self) -> list[str]:
        """The files of entries that were set aside because of a checksum mismatch."""
        return sorted(str(path) for path in self._folder.glob(f"*{_DAMAGED}"))

    def _read(self, path: Path) -> Quarantined | None:
        try:
            return _decode(checked_file.read(path))
        except FileNotFoundError:  # another process released it
            return None
        except (Damaged, msgspec.DecodeError) as error:
            _log.error("a quarantined document is lost: %s: %s", path, error)
            path.rename(path.with_suffix(_DAMAGED))
            return None

    def _paths(self) -> Iterator[Path]:
        return self._folder.glob(f"*{_ENTRY}")

    def _path(self, replica: str, key: Key) -> Path:
        return self._folder / f"{_prefix(replica, key[0])}{fingerprint(*key)}{_ENTRY}"


def _prefix(replica: str, tenant: str) -> str:
    return f"{fingerprint(replica, tenant)}."
