"""The writing of documents: how they are prepared, and what a write passes through before it reaches the replicas."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from adapters.graph.extract import Extractor, extractor
from orchestrator.bootstrap.embedded import prepared_by
from orchestrator.bootstrap.encoders import Encoding
from orchestrator.bootstrap.generations import fixed_settings
from orchestrator.bootstrap.replicas import Replicas
from orchestrator.bootstrap.sources import WRITE_TIMEOUT_S
from orchestrator.indexing.chunks import DEFAULT_CHUNK_TOKENS, Chunker
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.indexing.generations.recorded_writes import RecordedWriter
from orchestrator.indexing.generations.stores import Stores
from orchestrator.indexing.grouped_writes import GroupedWriter
from orchestrator.indexing.invalidation import InvalidatingWriter
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.pipeline import IndexingPipeline
from orchestrator.service.admission import Admission
from orchestrator.service.documents import DocumentService
from orchestrator.service.line_writer import LineWriter
from orchestrator.settings.groups import Settings

_MAX_READS, _MAX_WAITING = 64, 256
"""Reads at once, and reads or deletes of all tenants that may wait."""
_MAX_WRITES, _MAX_DELETES, _MAX_UPLOADS, _MAX_WAITING_WRITES = 8, 64, 4, 64
"""Writes at once, deletes by id at once, bodies of writes of one tenant in memory, and writes that may wait."""


def extractor_of(settings: Settings) -> Extractor:
    """What finds entities in documents."""
    return extractor(settings.encoding.entity_extractor)


def open_stores(
    settings: Settings,
    encoding: Encoding,
    replicas: Replicas,
    metadata_keys: MetadataKeys,
    data_versions: DataVersions,
) -> Stores:
    """The stores of a generation, below access control."""
    return Stores(
        preparation=prepared_by(settings, encoding.documents),
        pipeline=IndexingPipeline(encoding.documents, extractor_of(settings)),
        documents=replicas.reader,
        writer=replicas.writer,
        embedded=replicas.backends.embedded,
        replication=replicas.replication,
        metadata_keys=metadata_keys,
        data_versions=data_versions,
    )


def recorded_writer(settings: Settings, replicas: Replicas, stores: Stores) -> RecordedWriter:
    """What records writes for other generations."""
    invalidating = InvalidatingWriter(stores.writer, stores.data_versions, replicas.has_unapplied)
    catalog = Catalog(settings.storage.data_dir)
    return RecordedWriter(invalidating, catalog, settings.storage.index_name, fixed_settings(settings))


def document_service(settings: Settings, encoding: Encoding, replicas: Replicas, stores: Stores) -> DocumentService:
    """The use cases of documents."""
    writer = GroupedWriter(recorded_writer(settings, replicas, stores))
    return DocumentService(
        documents=replicas.reader,
        lines=LineWriter(writer, stores.metadata_keys, stores.pipeline),
        reads=Admission(_MAX_READS, _MAX_WAITING),
        uploads=defaultdict(lambda: Admission(_MAX_UPLOADS, _MAX_WAITING_WRITES)),
        writes=Admission(_MAX_WRITES, _MAX_WAITING_WRITES),
        deletes=Admission(_MAX_DELETES, _MAX_WAITING),
        is_current=replicas.is_current,
        generation=replicas.generation,
        write_timeout_s=WRITE_TIMEOUT_S,
        chunker=cache(lambda: Chunker(encoding.tokens.splitter(DEFAULT_CHUNK_TOKENS), DEFAULT_CHUNK_TOKENS)),
    )
