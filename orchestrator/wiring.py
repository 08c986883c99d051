"""The only file that names concrete adapters: from settings to a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapters import Retriever, Scope
from adapters.embed.fit import MAX_DOCUMENTS, fit
from adapters.embed.minilm import MiniLM
from adapters.embed.table_file import TableFile
from adapters.embedded import Library
from adapters.graph.centrality import CentralityFile
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.names import mentioned
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from adapters.vector.embedded import EmbeddedVector, VectorPart
from orchestrator.caller import Caller
from orchestrator.encode import Encoding
from orchestrator.engine import Engine
from orchestrator.indexing.writer import IndexWriter
from orchestrator.settings import Settings

_FIT_FROM = 200
"""Documents; with fewer there is too little to fit a query table to, and no load that would need one."""


@dataclass(frozen=True)
class Service:
    """Everything that a command or the API works with, opened."""

    settings: Settings
    engine: Engine
    writer: IndexWriter
    library: Library
    model: MiniLM
    table: TableFile
    centrality: CentralityFile
    graph: GraphPart

    @property
    def caller(self) -> Caller:
        """Who asks without a key."""
        return Caller(Scope(self.settings.tenant, self.settings.environment), self.settings.open_clearance)

    def refresh(self) -> None:
        """Open what another process has written since. Blocks; may run in a thread while searches go on."""
        self.library.refresh()
        self.table.refresh()
        self.centrality.refresh()

    def table_is_due(self) -> bool:
        """Whether there is no query table, or the corpus has doubled since it was fitted."""
        documents = self.library.current().catalog.count
        fitted = self.table.table
        return documents >= _FIT_FROM and (fitted is None or min(documents, MAX_DOCUMENTS) > 2 * fitted.documents)

    def tidy(self, progress: Callable[[str], None]) -> None:
        """What is worth doing after a bulk of writes: one segment, priors and a query table that know the corpus."""
        if self.library.scattered():
            progress("one segment")
            self.library.optimize()
        if self.library.generation() > self.centrality.generation:
            progress(self.centrality.name)
            now = self.library.current()
            self.centrality.compute(now.index(self.graph), now.catalog, now.manifest.version)
        if self.table_is_due():
            self.fit_table(progress)

    def fit_table(self, progress: Callable[[str], None]) -> None:
        """Fit the query table to what is stored. Blocks, for seconds; other processes follow."""
        entries = self.library.sample(MAX_DOCUMENTS)
        fit(self.model, entries, self.settings.model_dir, progress).save(self.table.path)
        self.table.refresh()


def open_service(settings: Settings) -> Service:
    """Open the stores and the model that the settings name.

    :raises AdapterError: if one cannot be opened.
    """
    model = MiniLM(settings.model_dir)
    vector, keyword, graph = VectorPart(), KeywordPart(), GraphPart()
    library = Library(
        settings.data_dir / "index",
        (vector, keyword, graph),
        "+".join((model.identity, vector.version, keyword.version, graph.version)),
    )
    table = TableFile(settings.data_dir / "query-table.bin", model.tokenizer, model.identity)
    encoding = Encoding(model, table, settings.query_encoder, settings.query_encoder_busy, settings.query_memo)
    central = CentralityFile(settings.data_dir / "index" / "centrality.msgpack", settings.centrality)
    walked = EmbeddedGraph(library, graph, central)
    sources: dict[str, Retriever] = {
        "vector": EmbeddedVector(library, vector),
        "graph": walked,
        "keyword": EmbeddedKeyword(library, keyword),
    }
    return Service(
        settings=settings,
        engine=Engine(settings, sources, library, walked, encoding, library),
        writer=IndexWriter(library, model, mentioned),
        library=library,
        model=model,
        table=table,
        centrality=central,
        graph=graph,
    )
