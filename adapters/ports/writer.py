"""Writing documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adapters.model.protection import UNRESTRICTED, Viewer
from adapters.ports.replica import Key, VectorRecord


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The outcome of a durable write.

    :param generation: the number of this write; searches of this process show it.
    :param pending: by replica, why it has not applied the write yet. The write is on disk, and is applied when the
        replica is available again.
    :param rejected: by document and replica, why the replica rejected the document. It is not retried.
    :param hidden: documents that were neither replaced nor deleted, because their writer may not see them;
        ``None`` if the replica that documents are read from has yet to decide that.
    :param absent: documents that were to be deleted and did not exist, as far as that is known.
    """

    generation: int
    pending: Mapping[str, str] = field(default_factory=dict)
    rejected: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
    hidden: frozenset[Key] | None = frozenset()
    absent: frozenset[Key] = frozenset()


class DocumentWriter(Protocol):
    """Writes documents. A repeated call has the same effect."""

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """Add or replace, and delete.

        When this returns, the change is on disk, and every later search sees it in every replica that is not pending.

        :param viewer: the writer. Documents that it may not see are neither replaced nor deleted. That is decided in
            the order of writes, so a document that another write hides first is not changed.

        :raises AdapterError: if nothing was written.
        """
        ...
