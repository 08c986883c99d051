"""Reads documents from a replica that may lack writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio.to_thread

from adapters import Record, Scope
from adapters.ports import DocumentFetcher
from fusion.columns import Documents
from fusion.values import DocId
from orchestrator.indexing.replication import Replication


@dataclass(frozen=True, slots=True)
class ReplicaDocuments:
    """The documents of a replica besides the one that documents are usually read from.

    It is an :class:`adapters.DocumentFetcher` that returns no version older than the usual replica has, because an
    older one may be visible to more callers.

    :param name: of the replica.
    """

    replication: Replication
    name: str
    documents: DocumentFetcher

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[DocId, Record]:
        """See :class:`adapters.DocumentFetcher`. Documents that any replica refused are left out.

        :raises Unavailable: if the replica lacks writes.
        """
        keys = {(scope.tenant, scope.environment, id_): id_ for id_ in documents.ids}
        readable = await anyio.to_thread.run_sync(self.replication.comparable, self.name, keys)
        return await self.documents.fetch(scope, Documents.of_ids(keys[key] for key in keys if key in readable))
