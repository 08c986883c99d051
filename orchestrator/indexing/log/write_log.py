"""The write log: durable, ordered writes, and for each replica how far it has applied them.

Each write is one file, named after its sequence number, complete or absent. Each replica has a cursor file: the newest
sequence number that it has applied. A write is removed when the cursors of all replicas have passed it. The documents
that a write must not change because its writer may not see them are recorded beside it for a day, for
another process may apply the write. Documents that a replica refuses are in a folder of their own, see
:class:`orchestrator.indexing.log.quarantine.Quarantine`. Every file has a checksum: a
damaged write is set aside under another name, a damaged cursor counts as 0, so that every write of the log is applied
to its replica again.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from time import time_ns

import msgspec

from adapters import AdapterError, Damaged, Unavailable
from adapters.ports.replica import Key
from adapters.servers.fingerprints import fingerprint
from adapters.storage import checked_file, files
from orchestrator.indexing.log.quarantine import Quarantine
from orchestrator.indexing.log.write import DamagedWrite, Write

_log = logging.getLogger(__name__)

_WRITE = ".write"
_HIDDEN = ".hidden"
_DAMAGED = ".damaged"
_OFFSET = ".offset"
_TRUNCATED = "truncated"
_CHECKED = ("*.cursor", f"*{_OFFSET}", _TRUNCATED)
"""Files with a checksum besides the writes and the records of hidden documents."""
_DAY_US = 24 * 60 * 60 * 1_000_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Write).decode


class WriteLog:
    """The log in a folder. It caches nothing, so all processes see the same; all methods block.

    :param max_bytes: maximum size of unapplied writes.
    :ivar quarantine: the documents that replicas refused.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self.max_bytes = max_bytes
        files.ensure_folder(folder)
        self.quarantine = Quarantine(folder / "quarantine")

    def exclusive(self) -> AbstractContextManager[None]:
        """Lock the log: one process at a time appends or truncates, without waiting inside."""
        return files.exclusive(self._folder / "lock")

    def applying(self, replica: str) -> AbstractContextManager[bool]:
        """Whether this process may apply writes to a replica now: one process at a time may."""
        return files.exclusive_now(self._applied_path(replica).with_suffix(".lock"))

    def append(self, write: Write, replicas: Iterable[str]) -> int:
        """Make a write durable. Returns its sequence number, which is larger than all before.

        Sequence numbers are the clock in microseconds, if that is larger than the last one. So those of a new log are
        usually larger than the versions in the replicas; if not, see :meth:`version_offset`.

        :raises Unavailable: if too much is unapplied already, or the disk is full; then nothing is stored.
        """
        if (size := self.size_bytes()) > self.max_bytes:
            lagging = ", ".join(store_name(replica) for replica in sorted(replicas) if self.unapplied(replica))
            raise Unavailable(f"the write log has {size} bytes that {lagging} could not apply yet: try again later")
        sequence = max([time_ns() // 1_000, self.newest() + 1])
        try:
            checked_file.write(self._path(sequence), _encode(write))
        except OSError as error:
            raise Unavailable("the write log cannot be written", f"{self._folder}: {error}") from error
        return sequence

    def newest(self) -> int:
        """The newest sequence number of all time; 0 if there is none."""
        return max([self.generation(), *self._sequences()])

    def generation(self) -> int:
        """The newest sequence number that any replica has applied; 0 if there is none."""
        return max([0, *(self._number(path) for path in self._folder.glob("*.cursor"))])

    def applied_total(self) -> int:
        """A number that grows whenever a replica applies a write."""
        return sum(self._number(path) for path in self._folder.glob("*.cursor"))

    def applied(self, replica: str) -> int:
        """The newest sequence number that a replica has applied; 0 if there is none."""
        return self._number(self._applied_path(replica))

    def unapplied(self, replica: str) -> list[int]:
        """The sequence numbers that a replica has not applied, in order."""
        applied = self.applied(replica)
        return [sequence for sequence in self._sequences() if sequence > applied]

    def is_applied(self, replica: str, sequence: int) -> bool:
        """Whether a replica has applied a write."""
        return self.applied(replica) >= sequence

    def read(self, sequence: int) -> Write:
        """One write.

        :raises DamagedWrite: if the checksum does not match.
        :raises AdapterError: if it cannot be read.
        """
        path = self._path(sequence)
        try:
            return _decode(checked_file.read(path))
        except (Damaged, msgspec.DecodeError) as error:
            raise DamagedWrite("a write is damaged", f"{path}: checksum mismatch") from error
        except OSError as error:
            raise AdapterError("the write log cannot be read", f"{path}: {error}") from error

    def set_aside(self, sequence: int) -> None:
        """Take a damaged write out of the log, so that those after it are applied. See :meth:`damaged`."""
        path = self._path(sequence)
        with contextlib.suppress(FileNotFoundError):  # another replica's applier did it
            path.rename(path.with_suffix(_DAMAGED))

    def damaged(self) -> list[str]:
        """The files of the writes that were set aside, and every other file that is damaged. Reads them all."""
        set_aside = [path for path in self._folder.glob(f"*{_DAMAGED}") if path.is_file()]
        hidden = [path for path in self._folder.glob(f"*{_HIDDEN}") if path.stem.isdecimal()]
        others = [path for kind in _CHECKED for path in self._folder.glob(kind)]
        found = filter(checked_file.is_damaged, [*self._writes(), *hidden, *others])
        return sorted(map(str, [*set_aside, *found])) + self.quarantine.damaged()

    def mark_applied(self, replica: str, sequence: int) -> None:
        """Record that a replica has applied everything up to and including ``sequence``."""
        checked_file.write(self._applied_path(replica), str(sequence).encode())

    def truncate(self, replicas: Iterable[str]) -> None:
        """Remove the writes that all of these replicas have applied."""
        applied = min(self._number(self._applied_path(replica)) for replica in replicas)
        removable = [sequence for sequence in self._sequences() if sequence <= applied]
        if removable:
            checked_file.write(self._folder / _TRUNCATED, str(removable[-1]).encode())
        for sequence in removable:
            self._path(sequence).unlink(missing_ok=True)
        for path in self._folder.glob(f"*{_HIDDEN}"):
            number = path.name.partition(".")[0]
            if number.isdecimal() and int(number) < applied - _DAY_US:
                path.unlink(missing_ok=True)

    def record_hidden(self, sequence: int, hidden: Collection[Key]) -> None:
        """Record, for a day, which documents a write must not change, before it is applied to any replica."""
        checked_file.write(self._hidden_path(sequence), msgspec.msgpack.encode(sorted(hidden)))

    def hidden(self, sequence: int) -> frozenset[Key] | None:
        """See :meth:`record_hidden`; ``None`` if it is not decided yet.

        :raises DamagedWrite: if the checksum of the record does not match.
        """
        path = self._hidden_path(sequence)
        try:
            return frozenset(msgspec.msgpack.decode(checked_file.read(path), type=list[Key]))
        except FileNotFoundError:
            return None
        except Damaged as error:
            # The hidden documents cannot be determined again once a part of the write has been applied.
            raise DamagedWrite("a write is damaged", error.detail) from error

    def is_writable(self) -> bool:
        """Whether this process may append and apply. A process with a read-only disk only reads."""
        return os.access(self._folder, os.W_OK)

    def size_bytes(self) -> int:
        """Size of the writes that are unapplied or wait for truncation."""
        size = 0
        for path in self._writes():
            with contextlib.suppress(FileNotFoundError):  # truncated meanwhile
                size += path.stat().st_size
        return size

    def is_empty(self) -> bool:
        """Whether no write is unapplied or waits for truncation."""
        return not any(self._writes())

    def record_missed_history(self, replica: str) -> None:
        """Record whether a replica misses writes that were truncated before it was added."""
        if self._number(self._applied_path(replica)) < self._number(self._folder / _TRUNCATED):
            files.replace(self._applied_path(replica).with_suffix(".gap"), b"")

    def has_missed_history(self, replica: str) -> bool:
        """Whether the replica misses writes, see :meth:`record_missed_history`."""
        return self._applied_path(replica).with_suffix(".gap").exists()

    def forget_missed_history(self, replica: str) -> None:
        """Record that the replica has been given what it missed."""
        self._applied_path(replica).with_suffix(".gap").unlink(missing_ok=True)

    def version_offset(self, replica: str) -> int:
        """The difference between versions in a replica and sequence numbers; 0 unless recorded.

        If the record is damaged, the offset is determined again at the next conflict.
        """
        return self._number(self._applied_path(replica).with_suffix(_OFFSET))

    def record_version_offset(self, replica: str, offset: int) -> None:
        """See :meth:`version_offset`."""
        checked_file.write(self._applied_path(replica).with_suffix(_OFFSET), str(offset).encode())

    def _sequences(self) -> list[int]:
        return sorted(int(path.name.removesuffix(_WRITE)) for path in self._writes())

    def _writes(self) -> Iterator[Path]:
        return (path for path in self._folder.glob(f"*{_WRITE}") if path.stem.isdecimal())

    def _path(self, sequence: int) -> Path:
        return self._folder / f"{sequence:020d}{_WRITE}"

    def _hidden_path(self, sequence: int) -> Path:
        return self._folder / f"{sequence:020d}{_HIDDEN}"

    def _applied_path(self, replica: str) -> Path:
        return self._folder / f"{fingerprint(replica)}.cursor"

    def _number(self, path: Path) -> int:
        try:
            return int(checked_file.read(path))
        except FileNotFoundError:
            return 0
        except Damaged as error:
            _log.error(
                "the cursor or the version offset of a replica is damaged, and is determined again: %s",
                error.for_operators,
            )
            return 0


def store_name(replica: str) -> str:
    """The first word of the name of a replica, without the address, which is for operators."""
    return replica.partition(" ")[0]
