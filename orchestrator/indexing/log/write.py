"""One write, as the write log stores it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from adapters.model.document import Record
from adapters.model.errors import AdapterError
from adapters.model.protection import HIGHEST_CLEARANCE, UNRESTRICTED, Sensitivity, Viewer
from adapters.ports.replica import Key, VectorRecord


class Write(msgspec.Struct, frozen=True):
    """One write as it is stored: records, their vectors one after the other, and the keys of deleted documents.

    :param windows: number of the vectors of each record.
    :param clearance: of the writer, with its ``user`` and ``teams``. Documents that it may not see are neither replaced
        nor deleted.
    """

    records: list[Record]
    vectors: bytes
    windows: list[int]
    deletes: list[Key]
    clearance: Sensitivity = HIGHEST_CLEARANCE
    user: str | None = None
    teams: tuple[str, ...] = ()

    @classmethod
    def of(cls, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED) -> Write:
        """Create a write. It has the last of several records with one key, and no delete of a key with a record."""
        newest = {each.record.key: each for each in upserts}
        vectors = b"".join(np.ascontiguousarray(each.vectors, np.float32).tobytes() for each in newest.values())
        records, windows = [each.record for each in newest.values()], [len(each.vectors) for each in newest.values()]
        deleted = sorted(set(deletes) - set(newest))
        return cls(records, vectors, windows, deleted, viewer.clearance, viewer.user, viewer.teams)

    @property
    def viewer(self) -> Viewer:
        """The writer."""
        return Viewer(self.clearance, self.user, self.teams)

    @property
    def is_conditional(self) -> bool:
        """Whether there may be documents that it must not change."""
        return not self.viewer.sees_everything

    @property
    def keys(self) -> list[Key]:
        """The keys of every document that the write replaces or deletes."""
        return [*(record.key for record in self.records), *self.deletes]

    def upserts(self, hidden: Collection[Key] = ()) -> list[VectorRecord]:
        """The records with their vectors, without those that would replace a hidden document."""
        if not self.records:
            return []
        ends = np.cumsum(self.windows)
        matrix = np.frombuffer(self.vectors, np.float32).reshape(ends[-1], -1)
        return [
            VectorRecord(record, vectors)
            for record, vectors in zip(self.records, np.split(matrix, ends[:-1]), strict=True)
            if record.key not in hidden
        ]


class DamagedWrite(AdapterError):
    """A write in the log whose checksum does not match."""
