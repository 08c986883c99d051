"""A folder with an index of passages and distinct queries, built once and used by several benchmarks."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
from rich.console import Console

from adapters import Document
from adapters.embedded import EmbeddedSources
from adapters.encoders.static_fit import pseudo_queries
from adapters.ports import VectorRecord
from benchmarks.passages import passages
from orchestrator.bootstrap import open_service
from orchestrator.cli.progress import progress_bar, progress_steps
from orchestrator.evaluation.workspace import Workspace
from orchestrator.indexing.ndjson import InvalidLine, ValidLine
from orchestrator.service.service import Service
from orchestrator.settings import load

ROOT = Path(__file__).parent / ".data"
"""Data that benchmarks write and use again."""
DOCUMENTS_FILE, QUERIES_FILE = "documents.ndjson", "queries.json"

_console = Console(stderr=True)


def corpus_folder(max_passages: int) -> Path:
    """The folder of the index of a number of passages."""
    return ROOT / f"passages-{max_passages}"


def build_corpus(folder: Path, max_passages: int) -> list[str]:
    """Write the documents, the index and the queries into a folder, unless they exist; returns the queries."""
    queries_file = folder / QUERIES_FILE
    if not queries_file.exists():
        _console.print("reading the documentation of this machine …")
        documents = passages(max_passages)
        if len(documents) < max_passages:
            _console.print(f"[yellow]this machine has {len(documents):,} passages, not {max_passages:,}[/yellow]")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DOCUMENTS_FILE).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in documents))
        start = time.monotonic()
        anyio.run(_build_index, folder, documents)
        _console.print(f"indexed {len(documents):,} passages in {time.monotonic() - start:.0f} s")
        queries_file.write_text(json.dumps(distinct_queries(documents, 60_000)))
    queries: list[str] = json.loads(queries_file.read_text())
    return queries


def distinct_queries(documents: Sequence[Document], max_queries: int) -> list[str]:
    """Distinct queries of 2 to 12 words for which the documents are relevant."""
    titles, texts = [each.title for each in documents], [each.text for each in documents]
    queries = dict.fromkeys(pseudo_queries(titles, texts, limit=max_queries))
    return [query for query in queries if 2 <= len(query.split()) <= 12]


async def index_documents(service: Service, documents: Sequence[Document]) -> None:
    """Index documents.

    :raises SystemExit: if a document is rejected, or a replica does not have all of them.
    """

    def refuse(line: InvalidLine) -> None:
        raise SystemExit(f"line {line.line}: {line.error}")

    lines = (ValidLine(number, document) for number, document in enumerate(documents, start=1))
    with progress_bar(_console, "encoding", "documents", len(documents)) as advance:
        report = await service.documents.index(lines, service.anonymous, refuse, advance)
    if report.pending or report.rejected:
        raise SystemExit(f"not all documents were indexed: {report.pending} {report.rejected}")


async def _build_index(folder: Path, documents: Sequence[Document]) -> None:
    async with open_service(load(data_dir=folder, query_encoder="static")) as service:  # fits it, for the benchmarks
        await index_documents(service, documents)
        with progress_steps(_console, "optimizing") as step:
            await service.maintenance.optimize(step)


async def indexed_records(workspace: Workspace) -> Sequence[VectorRecord]:
    """All documents of an evaluation with their vectors, indexed if they are not yet."""
    await workspace.index(open_service, lambda _: None)
    async with open_service(workspace.settings) as service:
        view = embedded_engine(service).index.current()
        return view.sample_with_vectors(view.segments.count)


def embedded_engine(service: Service) -> EmbeddedSources:
    """The embedded engine of a service that has one."""
    engine = service.maintenance.embedded
    if not isinstance(engine, EmbeddedSources):
        raise SystemExit(
            "this is measured with the embedded index: unset TRIVIUM_VECTOR, TRIVIUM_KEYWORD, TRIVIUM_GRAPH"
        )
    return engine
