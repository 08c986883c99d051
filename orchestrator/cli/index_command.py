"""``trivium index``: the same rules as ``POST /v1/documents``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import Annotated

import msgspec
import typer
from rich.markup import escape

from adapters import AdapterError, Scope
from adapters.model.errors import VersionMismatch
from adapters.model.spelling import nearest
from orchestrator.cli.maintain import optimize
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.scope_options import Environment, Tenant, checked_name, owner
from orchestrator.cli.terminal import err, out, print_error, reported_errors, with_cli_timeout, with_service
from orchestrator.indexing.corpus import CORPUS_FILES, corpus_file, count_lines, in_collection, parse_corpus
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, parse_ndjson
from orchestrator.indexing.not_ndjson import HEAD_BYTES, describe
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.service import Service
from orchestrator.settings.loading import load

_MAX_SHOWN_ERRORS = 20
_MAX_SHOWN_COLLECTIONS = 5


class NoDocuments(ValueError):
    """A file or folder has no documents; the message says what it is, and what to do."""


def index(
    path: Annotated[
        str,
        typer.Argument(help="an NDJSON file, - for standard input, or a folder with documents.ndjson or a BEIR corpus"),
    ],
    *,
    tenant: Tenant = None,
    environment: Environment = None,
    collection: Annotated[str | None, typer.Option(help="a collection instead of documents, the default one")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Add documents, replacing those with the same id. Invalid lines are reported, the others are indexed."""
    if collection is not None:
        with reported_errors():
            checked_name("collection", collection)
    invalid, start = _InvalidLines(), monotonic()
    collections: Counter[str] = Counter()
    with reported_errors(failures=(NoDocuments,)), _lines(path) as (lines, total):

        async def run(service: Service) -> tuple[IndexReport, Scope, int | None]:
            writer = owner(service, tenant, environment)
            if mismatch := service.search.mismatches().get("index"):
                raise VersionMismatch(mismatch)  # before the other replicas have what this one cannot take
            with progress_bar(err, "encoding", "documents", total) as advance:
                counted = _counted(in_collection(lines, collection), collections)
                report = await service.documents.index(counted, writer, invalid.add, advance)
            documents: int | None = None
            try:
                await optimize(service)
                documents = await service.count()
            except AdapterError as error:  # the documents are durable nevertheless
                print_error(error.for_operators)
            return report, writer.scope, documents

        report, scope, documents = with_service(with_cli_timeout(load()), run, writes=True)
    if as_json:
        _print_json(report, invalid, documents, scope, collections)
    else:
        _print(report, invalid, documents)
        named = [name for name, _ in collections.most_common(_MAX_SHOWN_COLLECTIONS)]
        more = f" and {len(collections) - len(named)} more" if len(collections) > len(named) else ""
        written = f"collection {escape(', '.join(named))}{more}" if named else "nothing written"
        err.print(
            f"tenant {escape(scope.tenant)}, environment {escape(scope.environment)}, "
            f"{written}; took {duration(monotonic() - start)}",
            soft_wrap=True,
            highlight=False,
        )
    is_complete = documents is not None and not (invalid.count or report.pending or report.rejected or report.undecided)
    raise typer.Exit(0 if is_complete else 1)


def _counted(lines: Iterable[ParsedLine], collections: Counter[str]) -> Iterator[ParsedLine]:
    """The lines; their collections are counted as they pass."""
    for line in lines:
        if isinstance(line, ValidLine):
            collections[line.document.collection] += 1
        yield line


class _InvalidLines:
    """The number of invalid lines, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[InvalidLine] = []

    def add(self, line: InvalidLine) -> None:
        self.count += 1
        if len(self.first) < _MAX_SHOWN_ERRORS:
            self.first.append(line)


def _print_json(
    report: IndexReport, invalid: _InvalidLines, documents: int | None, scope: Scope, collections: Counter[str]
) -> None:
    outcome: dict[str, object] = {
        "tenant": scope.tenant,
        "environment": scope.environment,
        "collections": dict(sorted(collections.items())),
        "indexed": report.indexed,
        "rejected": invalid.count,
        "documents": documents,
        "errors": invalid.first,
    }
    if report.pending or report.rejected or report.undecided:
        refused = {key[-1]: reasons for key, reasons in report.rejected.items()}
        outcome |= {"pending": len(report.undecided), "missing": report.pending, "refused": refused}
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")


def _print(report: IndexReport, invalid: _InvalidLines, documents: int | None) -> None:
    for line in invalid.first:
        err.print(f"[red]line {line.line}: {escape(line.error)}[/red]", soft_wrap=True)
    if invalid.count > len(invalid.first):
        err.print(f"[red]and {invalid.count - len(invalid.first)} more[/red]")
    for replica, reason in report.pending.items():
        err.print(f"[red]{escape(replica)} has not applied every write yet: {escape(reason)}[/red]", soft_wrap=True)
    for (*_, id_), reasons in report.rejected.items():
        err.print(f"[red]{escape(f'{id_}: {reasons}')}[/red]", soft_wrap=True)
    total = "" if documents is None else f"; the index has {documents} documents"
    pending = f", {len(report.undecided)} pending" if report.undecided else ""
    out.print(f"{report.indexed} indexed{pending}, {invalid.count} rejected{total}")


@contextmanager
def _lines(path: str) -> Iterator[tuple[Iterable[ParsedLine], int | None]]:
    """The parsed lines of a file, standard input or folder, and their number if it is known."""
    folder = Path(path)
    if path != "-" and folder.is_dir():
        if (corpus := corpus_file(folder)) is None:
            what = f"no {' or '.join(CORPUS_FILES)}" if any(folder.iterdir()) else "no files"
            raise NoDocuments(f"{path} is a folder with {what}: give a file of documents, one JSON object on each line")
        yield parse_corpus(corpus), count_lines(corpus)
        return
    with nullcontext(BufferedReader(sys.stdin.buffer)) if path == "-" else _opened(folder) as file:  # type: ignore[type-var]
        if what := describe(file.peek(HEAD_BYTES)[:HEAD_BYTES]):
            raise NoDocuments(f"{'standard input' if path == '-' else path} is {what}")
        yield parse_ndjson(file), None if path == "-" else count_lines(folder)


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        near = nearest(path.name, (each.name for each in path.parent.iterdir())) if path.parent.is_dir() else ""
        hint = f"; the nearest is {path.with_name(near)}" if near else ""
        raise NoDocuments(f"there is no file {path}{hint}") from error
