"""A copy of the documents that the write log is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from adapters.model.document import Record
from adapters.ports.encoders import Matrix

Key: TypeAlias = tuple[str, str, str]
"""(tenant, environment, id) of a document."""


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """A record to store, with its vectors.

    :param vectors: of the windows of its text, one at least; shape (windows, dimension). A search compares a query with
        the nearest of them.
    """

    record: Record
    vectors: Matrix


class Replica(Protocol):
    """A copy of the documents."""

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        """Add or replace, then delete. Searches see the change when this returns.

        Writes are applied in the order of their sequence numbers. A write may be applied again, completely or in
        part, with the same outcome.

        :raises Rejected: if the replica rejects the documents.
        :raises VersionConflict: if it has newer versions of some documents. All others were written.
        :raises AdapterError: if not all of it was applied.
        """
        ...

    async def count(self) -> int:
        """Number of documents of all scopes.

        :raises AdapterError: and nothing else.
        """
        ...


class IndexAdmin(Protocol):
    """The index behind a replica."""

    async def check(self) -> bool:
        """Whether the index exists.

        :raises VersionMismatch: if another encoder or analyser built it.
        :raises AdapterError: if the index cannot be checked.
        """
        ...

    async def create(self) -> None:
        """Create the index if it does not exist.

        :raises VersionMismatch: if another encoder or analyser built it.
        :raises AdapterError: if it cannot be created.
        """
        ...
