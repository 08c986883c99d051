"""The health service with parts that report what a test sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from adapters import Record, Scope
from adapters.ports import SourceQuery, VectorRecord
from adapters.ports.graph import LinkStrength
from adapters.ports.replica import Key
from adapters.ports.server import Difference
from fusion.columns import Ranking
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.replication import Replication
from orchestrator.measurement.calibration import CALIBRATION_FILE, ConfidenceCalibrations
from orchestrator.measurement.graph_trust import TRUST_FILE, GraphTrust
from orchestrator.schema.search import EncoderName
from orchestrator.service import health as health_module
from orchestrator.service.health import Finding, HealthService
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.replica_counts import ReplicaCounts
from tests.conftest import SCOPE
from tests.orchestrator.indexing.counters import MemoryCounters

NOW = 1_000_000.0
FILL = "`trivium fill` gives it the documents that the others have"


class Engine:
    """An embedded engine with the given counts."""

    measured_files: tuple[Path, ...] = ()

    def __init__(self, documents: int = 3, mismatch: str | None = None, **by_source: int) -> None:
        self._documents = documents
        self._mismatch = mismatch
        self._by_source = by_source or {"vector": documents, "graph": documents}
        self.is_static_encoder_outdated = False
        self.damaged_files: list[str] = []

    def documents_by_source(self) -> Mapping[str, int]:
        return self._by_source

    def documents(self) -> int:
        return self._documents

    def damaged(self) -> list[str]:
        return self.damaged_files

    def segments(self) -> int:
        return 2

    def generation(self) -> int:
        return 7

    def mismatch(self) -> str | None:
        return self._mismatch

    def static_encoder_outdated(self) -> bool:
        return self.is_static_encoder_outdated

    def merge(self, progress: Callable[[str], None]) -> None: ...

    def measure(self, progress: Callable[[str], None]) -> None:
        raise NotImplementedError


class Server:
    """A source on a server; each value is returned, or raised if it is an error."""

    def __init__(
        self, release: object = "1.2", exists: object = True, clock: object = NOW, differences: object = ()
    ) -> None:
        self.answers = {"release": release, "check": exists, "clock": clock, "differences": differences}
        self.calls: list[str] = []
        self.is_warming = False

    async def _answer(self, name: str) -> Any:
        self.calls.append(name)
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def release(self) -> str:
        return str(await self._answer("release"))

    async def check(self) -> bool:
        return bool(await self._answer("check"))

    async def clock(self) -> float | None:
        return await self._answer("clock")  # type: ignore[no-any-return]

    async def differences(self) -> Sequence[Difference]:
        return await self._answer("differences")  # type: ignore[no-any-return]

    async def create(self) -> None: ...

    async def count(self) -> int:
        return 0

    async def close(self) -> None: ...

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None: ...

    async def search(self, query: SourceQuery) -> Ranking:
        raise NotImplementedError


class LinkReader:
    """Answers with the same strengths for every scope."""

    def __init__(self, strengths: Sequence[LinkStrength]) -> None:
        self._strengths = strengths

    async def link_strengths(self, scope: Scope) -> Sequence[LinkStrength]:
        assert scope == SCOPE
        return self._strengths


class Sampler:
    """Has these documents."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = list(records)

    async def sample(self, count: int) -> list[Record]:
        return self._records[:count]


def service(
    folder: Path,
    *,
    engine: Engine | None = None,
    servers: Mapping[str, Server] | None = None,
    searches: Mapping[str, health_module.Probe] | None = None,
    replication: Replication | None = None,
    replica_counts: ReplicaCounts | None = None,
    counters: MemoryCounters | None = None,
    agreement: float | None = None,
    generation: int = 0,
    links: Sequence[LinkStrength] | None = None,
    sample: Sequence[Record] = (),
    query_encoders: tuple[EncoderName, ...] = ("model",),
    is_cache_open: bool = False,
) -> HealthService:
    """Health of a service with the given parts."""
    maintenance = MaintenanceService(
        followed=(),
        generation=lambda: generation,
        data_versions=DataVersions([], "", None),
        documents=None,  # type: ignore[arg-type]  # nothing is counted here
        is_current=lambda: True,
        metadata_keys=MetadataKeys(folder / "metadata-keys"),
        trust=GraphTrust(folder / TRUST_FILE),
        trust_measurement=None,  # type: ignore[arg-type]  # nothing is measured here
        calibrations=ConfidenceCalibrations(folder / CALIBRATION_FILE),
        calibration_measurement=None,  # type: ignore[arg-type]  # nothing is measured here
        centrality="pagerank",
        query_encoders=query_encoders,
        embedded=engine,
        replication=replication,
        recording=lambda _: nullcontext(),
        graph_maintenance=None,
    )
    return HealthService(
        sources=("vector", "graph", "keyword", "titles"),
        servers=servers or {},
        searches=searches or {},
        embedded=engine,
        static_encoder_agreement=lambda: agreement,
        replication=replication,
        replica_counts=replica_counts,
        counters=counters,
        maintenance=maintenance,
        metadata_keys=MetadataKeys(folder / "metadata-keys"),
        link_strengths=None if links is None else LinkReader(links),
        documents=Sampler(sample),
        encoder="minilm, 384 numbers",
        anonymous_scope=SCOPE,
        now=lambda: NOW,
        is_cache_open=is_cache_open,
    )


async def finding(health: HealthService, subject: str) -> Finding | None:
    """The finding about a subject; no more than one."""
    found = [each for each in await health.examine() if each.subject == subject]
    assert len(found) <= 1
    return found[0] if found else None
