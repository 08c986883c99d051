"""Everything that a command or the API works with, opened; and what keeps it in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import anyio.to_thread

from adapters import AdapterError, DocumentReader, Retriever, Scope
from adapters.embed.fit import MAX_DOCUMENTS, fit
from adapters.embed.minilm import MiniLM
from adapters.embed.table_file import TableFile
from adapters.embedded import Library
from adapters.graph.centrality import CentralityFile
from adapters.graph.part import GraphPart
from adapters.port import CentralityJob, Server
from cache import Numbers
from orchestrator.admission import Admission
from orchestrator.answers import Answers
from orchestrator.caller import Caller
from orchestrator.contract import CacheReport
from orchestrator.engine import Engine, Index
from orchestrator.guard import Guard
from orchestrator.indexing.replicate import Replicator
from orchestrator.indexing.writer import IndexWriter
from orchestrator.keys import Identity, Keys
from orchestrator.recent import Recent
from orchestrator.settings import Settings
from orchestrator.versions import Versions

_SEEN_S = 1.0
"""Seconds for which it is taken as known which server answers."""
_FIT_FROM = 200
"""Documents; with fewer there is too little to fit a query table to, and no load that would need one."""


async def _word(server: Server) -> str:
    try:
        await server.version()
    except AdapterError as error:
        return str(error)
    return "ok"


@dataclass(frozen=True)
class Local:
    """What is kept in the data folder by the embedded engine, for the sources that have no server."""

    library: Library
    centrality: CentralityFile
    graph: GraphPart | None


@dataclass(frozen=True)
class Service:
    """The service, opened.

    :param reader: the store that ``documents`` are read from.
    :param servers: by source, those that have one.
    :param keys: of whom it answers, if not of everybody.
    :param searches: who may search now; likewise who may read documents, and who may send what is to be written.
    :param replicator: where there are several stores to write to.
    :param generations: to be run, where there is a Redis.
    """

    settings: Settings
    keys: Keys | None
    searches: Admission
    reads: Admission
    writes: Admission
    engine: Engine
    answers: Answers
    versions: Versions
    generations: Numbers | None
    cache_report: Callable[[], CacheReport]
    writer: IndexWriter
    documents: DocumentReader
    reader: str
    index: Index
    model: MiniLM
    table: TableFile
    guard: Guard
    local: Local | None
    sources: Mapping[str, Retriever]
    servers: Mapping[str, Server]
    centrality: CentralityJob | None
    replicator: Replicator | None

    @cached_property
    def caller(self) -> Caller:
        """Who asks without a key."""
        return Caller(Scope(self.settings.tenant, self.settings.environment), self.settings.open_clearance)

    @cached_property
    def anybody(self) -> Identity:
        """Whoever asks, where there are no keys: they may do everything."""
        return Identity("open", self.caller, admin=True)

    async def count(self) -> int:
        """Documents of all scopes, by the store that they are read from."""
        if self.local:
            return self.local.library.current().catalog.count
        return await self.servers["keyword"].count()

    def refresh(self) -> None:
        """Open what another process has written since. Blocks; may run in a thread while searches go on."""
        self.table.refresh()
        self.guard.refresh()
        if self.local:
            self.local.library.refresh()
            self.local.centrality.refresh()
        if self.replicator:
            self.replicator.refresh()

    def caught_up(self) -> bool:
        """Whether the store that documents are read from holds every write: else what is read there may be old."""
        return self.replicator is None or not self.replicator.behind(self.reader)

    async def replay(self) -> None:
        """Give every store what it could not take before."""
        if self.replicator is None:
            return
        before = self.replicator.stamp()
        await self.replicator.replay()
        if self.replicator.stamp() != before:
            await self.versions.written((), others=True)

    async def health(self) -> dict[str, str]:
        """By source: ``ok``, or what is wrong with it."""
        told: dict[str, str] = {}
        if self.local:
            count = self.local.library.current().catalog.count
            for source, held in self.local.library.documents_by_part().items():
                told[source] = "ok" if held == count else f"holds {held} of {count} documents"
        return told | await self._servers_seen.get()

    @cached_property
    def _servers_seen(self) -> Recent[dict[str, str]]:
        """Asked at once, and not again for a moment: anybody may ask whether this process is ready."""

        async def look() -> dict[str, str]:
            words = await asyncio.gather(*(_word(server) for server in self.servers.values()))
            return dict(zip(self.servers, words, strict=True))

        return Recent(look, _SEEN_S)

    def table_is_due(self) -> bool:
        """Whether there is no query table, or the corpus has doubled since it was fitted."""
        if self.local is None:  # the documents and their vectors are on servers: there is nothing here to fit it to
            return False
        documents = self.local.library.current().catalog.count
        fitted = self.table.table
        return documents >= _FIT_FROM and (fitted is None or min(documents, MAX_DOCUMENTS) > 2 * fitted.documents)

    def guard_is_due(self) -> bool:
        """Whether anything was written since the graph was measured."""
        return self.guard.generation < self.index.generation()

    async def tidy(self, progress: Callable[[str], None]) -> None:
        """What is worth doing after a bulk of writes: one segment, priors and a query table that know the corpus."""
        await self.replay()
        if self.local:
            await anyio.to_thread.run_sync(self._tidy_local, self.local, progress)
        if self.centrality:
            progress(f"{self.settings.centrality} on the server")
            await self.centrality.compute_centralities(self.settings.centrality)
        if self.guard_is_due():
            progress("how far the graph can be trusted")
            vectors, graph, generation = self.sources["vector"], self.sources["graph"], self.index.generation()
            await self.guard.measure(self.documents, self.model, vectors, graph, generation)

    def _tidy_local(self, local: Local, progress: Callable[[str], None]) -> None:
        if local.library.scattered():
            progress("one segment")
            local.library.optimize()
        if local.graph and local.library.generation() > local.centrality.generation:
            progress(local.centrality.name)
            now = local.library.current()
            local.centrality.compute(now.index(local.graph), now.catalog, now.manifest.version)
        if self.table_is_due():
            progress("query table")
            entries = local.library.entries(MAX_DOCUMENTS)
            fit(self.model, entries, self.settings.model_dir, progress).save(self.table.path)
            self.table.refresh()
