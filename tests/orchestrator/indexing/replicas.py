"""A replica in memory that fails in the way that a test sets, and shortcuts for writes and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from adapters import Record, Rejected, Scope, TimedOut, Unavailable
from adapters.model.protection import Protection
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from fusion.columns import Documents
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replication import Replication
from tests.conftest import SCOPE, vector_record

MAX_LOG_BYTES = 2**30


class MemoryReplica:
    """Stores texts by id.

    :ivar error: raised by every method.
    :ivar unapplicable: the number of a write that cannot be applied.
    :ivar refused_ids: documents that are refused.
    :ivar max_documents: a call with more documents times out.
    :ivar resume: if it is set, ``apply`` sets ``reached`` and waits for it.
    """

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.applied: list[int] = []
        self.created = 0
        self.error: Exception | None = None
        self.unapplicable: int | None = None
        self.refused_ids: set[str] = set()
        self.max_documents: int | None = None
        self.resume: anyio.Event | None = None
        self.reached = anyio.Event()

    async def check(self) -> bool:
        return True

    async def create(self) -> None:
        if self.error:
            raise self.error
        self.created += 1

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        if self.error:
            raise self.error
        if sequence == self.unapplicable:
            raise Unavailable(f"cannot apply {sequence}")
        if self.resume:
            self.reached.set()
            await self.resume.wait()
        if self.max_documents is not None and len(upserts) > self.max_documents:
            raise TimedOut(f"no time for {len(upserts)}")
        ids = [each.record.document.id for each in upserts] + [id_ for _, _, id_ in deletes]
        if refused := [id_ for id_ in ids if id_ in self.refused_ids]:
            raise Rejected(f"refuses {refused}")
        self.applied.append(sequence)
        self.records |= {each.record.document.id: each.record for each in upserts}
        for _, _, id_ in deletes:
            self.records.pop(id_, None)

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        if self.error:
            raise self.error
        return {id_: self.records[id_] for id_ in documents.ids if id_ in self.records}

    async def protections(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Protection]:
        records = await self.fetch(scope, Documents.of_ids(ids))
        return {id_: each.document.protection for id_, each in records.items()}

    @property
    def texts(self) -> dict[str, str]:
        """The stored documents by id."""
        return {id_: record.document.text for id_, record in self.records.items()}

    async def count(self) -> int:
        if self.error:
            raise self.error
        return len(self.records)


def open_log(folder: Path, max_bytes: int = MAX_LOG_BYTES) -> WriteLog:
    """The log of a folder; a second call is a restart, or another process."""
    return WriteLog(folder / "log", max_bytes)


def open_replication(
    folder: Path, replicas: Mapping[str, MemoryReplica], max_bytes: int = MAX_LOG_BYTES, slot_timeout_s: float = 30.0
) -> Replication:
    """Replication with the log of a folder. Documents are read from the first replica."""
    name, first = next(iter(replicas.items()))
    return Replication(open_log(folder, max_bytes), replicas, name, first, "t", slot_timeout_s)


def key(id_: str) -> Key:
    """The key of a document."""
    return SCOPE.tenant, SCOPE.environment, id_


def upsert(id_: str, text: str = "") -> Write:
    """A write of one document."""
    return Write.of([vector_record(id_, text)], [])
