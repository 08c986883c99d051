"""The durable, ordered record of writes: what is in it is never lost, and reaches every store in its order.

A folder. Each write is one file, named by its version, there whole or not at all. Each store has a cursor: the newest
version that it holds. A file goes when every store's cursor has passed it. What a store refuses of a write is kept
beside it for a day: whoever wrote it may not be who delivers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from time import time_ns

import msgspec
import numpy as np

from adapters import AdapterError, Entry, Record, Unavailable, files
from adapters.fingerprint import fingerprint
from adapters.port import Key

_SUFFIX = ".write"
_REFUSED = ".refused"
_SWEPT = "swept"
_DAY_US = 24 * 60 * 60 * 1_000_000


class Write(msgspec.Struct, frozen=True):
    """One write as it is on disk: records, their vectors one after the other, and what is deleted."""

    records: list[Record]
    vectors: bytes
    deletes: list[Key]

    @classmethod
    def of(cls, upserts: Sequence[Entry], deletes: Iterable[Key]) -> Write:
        """What is to be kept of a write: of several entries with one key the last, and no delete beside an entry."""
        newest = {entry.record.key: entry for entry in upserts}
        vectors = b"".join(np.ascontiguousarray(entry.vector, np.float32).tobytes() for entry in newest.values())
        return cls([entry.record for entry in newest.values()], vectors, sorted(set(deletes) - set(newest)))

    def entries(self) -> list[Entry]:
        """The entries again."""
        matrix = np.frombuffer(self.vectors, np.float32).reshape(len(self.records), -1) if self.records else ()
        return [Entry(record, vector) for record, vector in zip(self.records, matrix, strict=True)]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Write).decode


class Journal:
    """The journal in ``folder``. Blocks; holds nothing in memory, so that any number of processes see the same.

    Appending and sweeping need :meth:`exclusive`, what moves a cursor needs :meth:`delivering`, reading needs nothing.

    :param max_bytes: how much may wait for stores that cannot be reached.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        folder.mkdir(parents=True, exist_ok=True)

    def exclusive(self) -> AbstractContextManager[None]:
        """One writer at a time, across processes; blocks until it is our turn, which is soon: nobody waits inside."""
        return files.exclusive(self._folder / "lock")

    def delivering(self, store: str) -> AbstractContextManager[bool]:
        """One at a time brings a store up, across processes: whether it is us."""
        return files.exclusive_now(self._cursor(store).with_suffix(".lock"))

    def append(self, write: Write, stores: Iterable[str]) -> int:
        """Make it durable; its version, greater than any before.

        Versions are microseconds of the clock where that is greater: so a journal that begins anew on another
        machine goes on above what the stores hold already.

        :raises Unavailable: if too much is waiting already, or the disk is full; then nothing is kept.
        """
        waiting = sum(path.stat().st_size for path in self._files())
        if waiting > self._max_bytes:
            behind = ", ".join(store for store in sorted(stores) if self.pending(store))
            raise Unavailable(f"the journal holds {waiting} bytes that {behind} could not take yet: try again later")
        version = max([time_ns() // 1_000, self.newest() + 1])
        try:
            files.replace(self._file(version), _encode(write))
        except OSError as error:
            raise Unavailable(f"the journal in {self._folder} cannot be written: {error}") from error
        return version

    def newest(self) -> int:
        """The newest version that was ever written; 0 if none was."""
        return max([self.generation(), *self._versions()])

    def generation(self) -> int:
        """The newest version that any store shows; 0 if there is none."""
        return max([0, *(self._read(path) for path in self._folder.glob("*.cursor"))])

    def delivered(self) -> int:
        """Grows whenever any store is given anything."""
        return sum(self._read(path) for path in self._folder.glob("*.cursor"))

    def pending(self, store: str) -> list[int]:
        """The versions that a store does not hold yet, in their order."""
        held = self._read(self._cursor(store))
        return [version for version in self._versions() if version > held]

    def lacks(self, store: str, version: int) -> bool:
        """Whether a store does not hold a version yet."""
        return self._read(self._cursor(store)) < version

    def read(self, version: int) -> Write:
        """One write.

        :raises AdapterError: if its file is damaged.
        """
        path = self._file(version)
        try:
            return _decode(path.read_bytes())
        except (msgspec.DecodeError, OSError) as error:
            raise AdapterError(f"{path} cannot be read: {error}") from error

    def advance(self, store: str, version: int) -> None:
        """A store holds everything up to and with ``version``."""
        files.replace(self._cursor(store), str(version).encode())

    def sweep(self, stores: Iterable[str]) -> None:
        """Remove what all of these stores hold."""
        held = min(self._read(self._cursor(store)) for store in stores)
        gone = [version for version in self._versions() if version <= held]
        if gone:
            files.replace(self._folder / _SWEPT, str(gone[-1]).encode())
        for version in gone:
            self._file(version).unlink(missing_ok=True)
        for path in self._folder.glob(f"*{_REFUSED}"):
            if int(path.name.partition(".")[0]) < held - _DAY_US:
                path.unlink(missing_ok=True)

    def note_refused(self, store: str, version: int, refused: Mapping[Key, str]) -> None:
        """Keep for a day what a store will not have of a write, and why."""
        path = self._file(version).with_suffix(f".{fingerprint(store)}{_REFUSED}")
        files.replace(path, msgspec.msgpack.encode((store, list(refused.items()))))
        self._lacking(store).touch()

    def has_refused(self, store: str) -> bool:
        """Whether a store has ever refused anything of a write: it may hold what was there before for good."""
        return self._lacking(store).exists()

    def refused(self, version: int) -> dict[Key, dict[str, str]]:
        """What stores would not have of a write, and why: by document, then by store."""
        found: dict[Key, dict[str, str]] = {}
        for path in sorted(self._folder.glob(f"{version:020d}.*{_REFUSED}")):
            store, reasons = msgspec.msgpack.decode(path.read_bytes(), type=tuple[str, list[tuple[Key, str]]])
            for key, reason in reasons:
                found.setdefault(key, {})[store] = reason
        return found

    def holds_anything(self) -> bool:
        """Whether there is a write that some store may lack, or that was not swept before a crash."""
        return any(self._files())

    def note_gap(self, store: str) -> None:
        """Remember that a store lacks what was swept already: it is new, or was not among the stores for a while."""
        if self._read(self._cursor(store)) < self._read(self._folder / _SWEPT):
            files.replace(self._cursor(store).with_suffix(".gap"), b"")

    def has_gap(self, store: str) -> bool:
        """Whether :meth:`note_gap` has seen one."""
        return self._cursor(store).with_suffix(".gap").exists()

    def _versions(self) -> list[int]:
        return sorted(int(path.name.removesuffix(_SUFFIX)) for path in self._files())

    def _files(self) -> Iterator[Path]:
        return self._folder.glob(f"*{_SUFFIX}")

    def _file(self, version: int) -> Path:
        return self._folder / f"{version:020d}{_SUFFIX}"

    def _lacking(self, store: str) -> Path:
        return self._cursor(store).with_suffix(".lacking")

    def _cursor(self, store: str) -> Path:
        return self._folder / f"{fingerprint(store)}.cursor"

    def _read(self, path: Path) -> int:
        try:
            return int(path.read_text())
        except FileNotFoundError:
            return 0
        except ValueError as error:
            raise AdapterError(f"{path} is damaged: {error}") from error
