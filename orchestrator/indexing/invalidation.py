"""Invalidates cached responses of the affected scopes before a write is acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import anyio.to_thread

from adapters import Scope, Viewer
from adapters.model.protection import UNRESTRICTED
from adapters.ports import DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from orchestrator.indexing.data_version import DataVersions


class InvalidatingWriter:
    """A :class:`adapters.ports.DocumentWriter` that advances the data version of each affected scope.

    :param has_unapplied: whether earlier writes wait for a replica: then this write applies them, too.
    """

    def __init__(self, writer: DocumentWriter, data_versions: DataVersions, has_unapplied: Callable[[], bool]) -> None:
        self._writer = writer
        self._data_versions = data_versions
        self._has_unapplied = has_unapplied

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """See :class:`adapters.ports.DocumentWriter`. A failed write invalidates, too: part of it may be applied."""
        deleted = list(deletes)
        scopes = {Scope(each.record.tenant, each.record.environment) for each in upserts}
        scopes |= {Scope(tenant, environment) for tenant, environment, _ in deleted}
        all_scopes = await anyio.to_thread.run_sync(self._has_unapplied)
        try:
            return await self._writer.write(upserts, deleted, viewer)
        finally:
            await self._data_versions.advance(scopes, all_scopes)
