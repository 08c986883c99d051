"""Opens the embedded index, the clients of servers, and the write log that is applied to all replicas."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import anyio.to_thread

from adapters.ports import DocumentReader, DocumentWriter
from orchestrator.bootstrap.embedded import FORMATS, open_embedded, prepared_by
from orchestrator.bootstrap.encoders import Encoding
from orchestrator.bootstrap.sources import (
    WRITE_TIMEOUT_S,
    Backends,
    SourceBinding,
    add_embedded,
    build_formats,
    in_order,
    server_backends,
)
from orchestrator.indexing.data_version import VersionSource
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replica_documents import ReplicaDocuments
from orchestrator.indexing.replication import Replication
from orchestrator.service.replica_counts import ReplicaCounts
from orchestrator.settings.backends import EMBEDDED
from orchestrator.settings.groups import Settings

LOG_FOLDER = "write-log"
"""Name of the write log's folder in the data folder."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """The sources and replicas that the settings name.

    :param required_build: the build id that the settings require.
    :param replication: ``None`` if the embedded index is the only replica.
    :param counts: ``None`` without replication.
    """

    backends: Backends
    required_build: str
    replication: Replication | None
    counts: ReplicaCounts | None

    @property
    def reader(self) -> DocumentReader:
        """The reader of documents, from a server or from the embedded index."""
        return _reader(self.backends)

    @property
    def copies(self) -> list[ReplicaDocuments]:
        """Where documents can be read by id if the server that they are read from is unavailable."""
        if self.replication is None or self.backends.documents is None:
            return []
        return [ReplicaDocuments(self.replication, name, each) for name, each in self.backends.copies.items()]

    @property
    def writer(self) -> DocumentWriter:
        """The writer of documents to all replicas."""
        if self.replication:
            return self.replication
        if self.backends.embedded is None:
            raise ValueError("there is neither an embedded index nor a server to write to")
        return self.backends.embedded.index

    @property
    def local(self) -> list[VersionSource]:
        """The parts whose data versions are in files of this process."""
        engine, replication = self.backends.embedded, self.replication
        return [*([engine.index] if engine else []), *([replication] if replication else [])]

    def generation(self) -> int:
        """The newest write that searches may find, as far as this process knows."""
        if self.replication:
            return self.replication.generation()
        return self.backends.embedded.generation() if self.backends.embedded else 0

    def build_id(self) -> str:
        """The build id of the indexes that are searched."""
        if self.replication or self.backends.embedded is None:
            return self.required_build
        return self.backends.embedded.index.build_id

    def has_unapplied(self) -> bool:
        """Whether a replica may lack a write."""
        return self.replication is not None and self.replication.has_unapplied()

    def is_current(self) -> bool:
        """Whether the replica that documents are read from has every write. Blocks."""
        return self.replication is None or self.replication.is_current()

    async def count(self) -> int:
        """Number of documents of all scopes."""
        if self.backends.embedded:
            return self.backends.embedded.documents()
        return await self.backends.replicas[self.backends.documents_replica].count()


async def open_replicas(
    settings: Settings,
    encoding: Encoding,
    more_sources: Sequence[SourceBinding],
    stack: AsyncExitStack,
) -> Replicas:
    """Open the embedded index and the clients of servers. Connections to servers are opened on first use.

    :param stack: closes what is opened here.
    :raises AdapterError: if the embedded index cannot be opened, or a driver is not installed.
    """
    preparation = prepared_by(settings, encoding.documents)
    required_build = "+".join((preparation, *build_formats(settings, FORMATS)))
    backends = server_backends(settings, encoding.model.dimension, required_build)
    for server in backends.servers.values():
        stack.push_async_callback(server.close)
    if EMBEDDED in settings.sources.urls.values():
        engine = await anyio.to_thread.run_sync(open_embedded, settings, preparation, encoding)
        add_embedded(backends, settings, engine)
    for binding in more_sources:
        backends.bindings[binding.source.name] = binding
    backends.bindings = in_order(backends.bindings)
    replication = _replication(settings, backends, required_build)
    return Replicas(backends, required_build, replication, ReplicaCounts(replication) if replication else None)


def _replication(settings: Settings, backends: Backends, build_id: str) -> Replication | None:
    if backends.embedded and not backends.servers:
        return None
    log = WriteLog(settings.storage.data_dir / LOG_FOLDER, settings.writes.log_max_bytes)
    return Replication(log, backends.replicas, backends.documents_replica, _reader(backends), build_id, WRITE_TIMEOUT_S)


def _reader(backends: Backends) -> DocumentReader:
    if backends.documents:
        return backends.documents
    if backends.embedded is None:
        raise ValueError("there is neither an embedded index nor a server to read documents from")
    return backends.embedded.index
