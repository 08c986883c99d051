"""Maintenance after many writes, and reading the writes of other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio.to_thread

from adapters import Scope
from adapters.embedded import EmbeddedSources
from adapters.model.document import METADATA
from adapters.model.filter import And, Exists, Or, access, normal
from adapters.model.protection import UNRESTRICTED
from adapters.ports import DocumentReader, Key
from adapters.ports.graph import Centrality, GraphMaintenance
from adapters.storage.checked_file import is_damaged
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.log.quarantine import Quarantined
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.replication import Replication
from orchestrator.measurement.calibration import CalibrationMeasurement, ConfidenceCalibrations
from orchestrator.measurement.graph_trust import GraphTrust
from orchestrator.measurement.trust_measurement import TrustMeasurement
from orchestrator.schema.search import EncoderName

Progress = Callable[[str], None]
"""Called with the name of each step as it begins."""


@dataclass(frozen=True, slots=True)
class MaintenanceService:
    """The maintenance of the index.

    :param followed: refresh methods of everything that other processes may change.
    :param documents: the replica that documents are read from.
    :param is_current: whether that replica has every write. Blocks.
    :param query_encoders: what may encode a query.
    :param embedded: ``None`` if all sources are on servers.
    :param replication: ``None`` if the embedded index is the only replica.
    :param recording: inside, the keys of documents that may change are recorded for other generations.
    :param graph_maintenance: ``None`` if the graph is embedded.
    """

    followed: tuple[Callable[[], object], ...]
    generation: Callable[[], int]
    data_versions: DataVersions
    documents: DocumentReader
    is_current: Callable[[], bool]
    metadata_keys: MetadataKeys
    trust: GraphTrust
    trust_measurement: TrustMeasurement
    calibrations: ConfidenceCalibrations
    calibration_measurement: CalibrationMeasurement
    centrality: Centrality
    query_encoders: tuple[EncoderName, ...]
    embedded: EmbeddedSources | None
    replication: Replication | None
    recording: Callable[[Sequence[Key]], AbstractAsyncContextManager[None]]
    graph_maintenance: GraphMaintenance | None

    def refresh(self) -> None:
        """Read what other processes have written. Blocks; may run in a thread while searches run.

        :raises AdapterError: if a file is damaged; the state that was read before stays in use.
        """
        for refresh in self.followed:
            refresh()

    def shows(self, generation: int) -> bool:
        """Whether searches of this process show a write, after :meth:`refresh`. Blocks."""
        if self.replication is None and self.generation() >= generation:
            return True
        self.refresh()
        return self.generation() >= generation and (
            self.replication is None or self.replication.has_applied(generation)
        )

    async def apply_unapplied(self) -> None:
        """Apply waiting writes to replicas that were unavailable."""
        if self.replication is None:
            return
        before = self.replication.data_version()
        await self.replication.apply_unapplied()
        if self.replication.data_version() != before:
            await self.data_versions.advance((), all_scopes=True)

    def refused(self) -> list[Quarantined]:
        """The documents that replicas refused, the oldest write first."""
        return self.replication.refused() if self.replication else []

    async def retry_refused(self) -> int:
        """Apply the refused documents again. Returns how many were accepted.

        :raises AdapterError: if a replica is unavailable, or lacks writes.
        """
        if self.replication is None:
            return 0
        try:
            async with self.recording([entry.key for entry in await anyio.to_thread.run_sync(self.refused)]):
                return await self.replication.retry_refused()
        finally:
            await self.data_versions.advance((), all_scopes=True)

    def trust_outdated(self) -> bool:
        """Whether anything was written since the graph was measured."""
        return self.trust.generation < self.generation()

    def static_encoder_outdated(self) -> bool:
        """Whether the static encoder has to be fitted."""
        return self.embedded is not None and self.embedded.static_encoder_outdated()

    def calibration_outdated(self) -> bool:
        """Whether anything was written since confidence was calibrated, or an encoder was not calibrated."""
        return self.calibrations.generation < self.generation() or self.calibrations.lacks(self.query_encoders)

    def outdated(self) -> bool:
        """Whether :meth:`measure` has anything to do."""
        if not self.generation():
            return False
        return self.trust_outdated() or self.calibration_outdated() or self.static_encoder_outdated()

    def damaged(self) -> list[str]:
        """The damaged files of measurements, which count as not measured. Blocks."""
        measured = self.embedded.measured_files if self.embedded else ()
        return [str(path) for path in (self.trust.path, self.calibrations.path, *measured) if is_damaged(path)]

    async def optimize(self, progress: Progress, erase: bool = False) -> None:
        """Apply waiting writes, merge segments, forget unused metadata keys, and measure what is outdated.

        :param erase: whether nothing of a deleted document stays in the data folder, however long that takes.
        :raises AdapterError: if a source or a replica is unavailable.
        """
        await self.apply_unapplied()
        if self.embedded:
            await anyio.to_thread.run_sync(self.embedded.merge, progress, erase)
        await self.metadata_keys.recount(self._has_documents)
        await self.measure(progress)

    async def measure(self, progress: Progress) -> None:
        """Measure again what depends on the documents, as far as it is outdated.

        :raises AdapterError: if a source or a replica is unavailable.
        """
        if self.embedded:
            await anyio.to_thread.run_sync(self.embedded.measure, progress)
        if self.graph_maintenance:
            progress("strengths of documents on the server")
            await self.graph_maintenance.update_strengths()
            progress(f"{self.centrality} on the server")
            await self.graph_maintenance.compute_centralities(self.centrality)
        if self.trust_outdated():
            progress("graph trust")
            self.trust.save(await self.trust_measurement.run(self.generation()))
        if self.calibration_outdated():
            progress("confidence")
            self.calibrations.save(await self.calibration_measurement.run(self.generation()))

    async def _has_documents(self, scope: Scope, keys: Sequence[str]) -> bool | None:
        """Whether a document of a scope has one of some metadata keys; ``None`` if a write is not applied yet."""
        await anyio.to_thread.run_sync(self.refresh)
        if not await anyio.to_thread.run_sync(self.is_current):
            return None
        has_key = Or(tuple(Exists(METADATA + key) for key in keys))
        condition = normal(And((access(scope, UNRESTRICTED), has_key)))
        return bool(await self.documents.counts("collection", condition))
