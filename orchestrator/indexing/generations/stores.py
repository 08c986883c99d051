"""The documents of one generation in all its stores: what is read from one and written to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import anyio
import anyio.to_thread

from adapters import Document, Record, Scope, Unavailable
from adapters.embedded import EmbeddedSources
from adapters.ports import DocumentReader, DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from fusion.columns import Documents
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.log.write_log import store_name
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.indexing.replication import Replication

_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts to apply writes to a server that did not answer."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one generation.

    :param preparation: identity of encoder and extractor: records of the same one have the same vectors and entities.
    :param documents: the replica that documents are read from.
    :param embedded: ``None`` if all sources are on servers.
    :param replication: ``None`` if the embedded index is the only replica.
    """

    preparation: str
    pipeline: IndexingPipeline
    documents: DocumentReader
    writer: DocumentWriter
    embedded: EmbeddedSources | None
    replication: Replication | None
    metadata_keys: MetadataKeys
    data_versions: DataVersions

    def generation(self) -> int:
        """The newest write that every reader of this process sees."""
        if self.replication:
            return self.replication.generation()
        return self.embedded.generation() if self.embedded else 0

    def continue_after(self, live: Stores) -> None:
        """Have the writes counted from those of the live generation on: a client that waits for a write by its number
        never waits for one that has passed. Servers count microseconds in any case."""
        if self.embedded and not self.replication:
            self.embedded.index.least_generation = live.generation() + 1

    async def write(self, upserts: Sequence[VectorRecord], deletes: Sequence[Key] = ()) -> dict[Key, str]:
        """Write, and wait until every store has it. Returns the documents that a store refused, and why.

        :raises Unavailable: if a server does not answer for a while; the write is durable.
        """
        keys: dict[Scope, set[str]] = {}
        for each in upserts:
            keys.setdefault(scope_of(each.record), set()).update(each.record.document.metadata)
        for scope, of_scope in keys.items():
            await anyio.to_thread.run_sync(self.metadata_keys.add, of_scope, scope)
        acknowledgement = await self.writer.write(upserts, deletes)
        refused = {key: _described(reasons) for key, reasons in acknowledgement.rejected.items()}
        if acknowledgement.pending:
            await self.settle()
        await self.data_versions.advance(keys, all_scopes=True)
        return refused

    async def settle(self) -> None:
        """Wait until every store has every write.

        :raises Unavailable: if a server does not answer for a while.
        """
        if self.replication is None:
            return
        for wait_s in _WAITS_S:
            if not (reasons := await self.replication.apply_unapplied()):
                return
            await anyio.sleep(wait_s)
        if reasons := await self.replication.apply_unapplied():
            raise Unavailable(_described({store_name(name): reason for name, reason in reasons.items()}))

    async def newest(self, keys: Sequence[Key]) -> dict[Key, Record]:
        """The documents that exist among these, as they are now."""
        ids: dict[Scope, list[str]] = {}
        for tenant, environment, id_ in keys:
            ids.setdefault(Scope(tenant, environment), []).append(id_)
        found: dict[Key, Record] = {}
        for scope, of_scope in ids.items():
            records = await self.documents.fetch(scope, Documents.of_ids(of_scope))
            found |= {record.key: record for record in records.values()}
        return found

    async def prepare(self, documents: Sequence[tuple[Scope, Document]]) -> list[VectorRecord]:
        """The documents with the entities and the vectors of this generation, in their order."""
        prepared: list[VectorRecord] = []
        for scope, of_scope in groupby(documents, key=itemgetter(0)):
            prepared += await self.pipeline.prepare([document for _, document in of_scope], scope)
        return prepared

    async def counts(self) -> Mapping[str, int | str]:
        """Number of documents by store, or why it is not known. That of an embedded source is its own count."""
        counts: dict[str, int | str] = {}
        if self.embedded:
            counts |= await anyio.to_thread.run_sync(self.embedded.documents_by_source)
            counts["documents"] = self.embedded.documents()
        if self.replication:
            found = await self.replication.counts()
            counts |= {store_name(name): count for name, count in found.items() if name != "embedded"}
        return counts


def scope_of(record: Record) -> Scope:
    """The scope of a record."""
    return Scope(record.tenant, record.environment)


def _described(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{store}: {reason}" for store, reason in sorted(reasons.items()))
