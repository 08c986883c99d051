"""``trivium index``: the same rules as ``POST /v1/documents``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.markup import escape

from adapters import AdapterError
from adapters.model.document import HIGHEST_CLEARANCE
from orchestrator.cli.maintain import optimize
from orchestrator.cli.progress import progress_bar
from orchestrator.cli.terminal import err, out, print_error, reported_errors, with_cli_timeout, with_service
from orchestrator.indexing.corpus import CORPUS_FILES, corpus_file, count_lines, parse_corpus
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, parse_ndjson
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.service import Service
from orchestrator.settings.loading import load

_MAX_SHOWN_ERRORS = 20


def index(
    path: Annotated[
        str,
        typer.Argument(help="an NDJSON file, - for standard input, or a folder with documents.ndjson or a BEIR corpus"),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Add documents, replacing those with the same id. Invalid lines are reported, the others are indexed."""
    invalid = _InvalidLines()
    with reported_errors(), _lines(path) as (lines, total):

        async def run(service: Service) -> tuple[IndexReport, int | None]:
            with progress_bar(err, "encoding", "documents", total) as advance:
                # Who may change the data folder may write every document.
                writer = replace(service.anonymous, clearance=HIGHEST_CLEARANCE)
                report = await service.documents.index(lines, writer, invalid.add, advance)
            documents: int | None = None
            try:
                await optimize(service)
                documents = await service.count()
            except AdapterError as error:  # the documents are durable nevertheless
                print_error(error.for_operators)
            return report, documents

        report, documents = with_service(with_cli_timeout(load()), run)
    if as_json:
        _print_json(report, invalid, documents)
    else:
        _print(report, invalid, documents)
    is_complete = documents is not None and not (invalid.count or report.pending or report.rejected or report.undecided)
    raise typer.Exit(0 if is_complete else 1)


class _InvalidLines:
    """The number of invalid lines, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[InvalidLine] = []

    def add(self, line: InvalidLine) -> None:
        self.count += 1
        if len(self.first) < _MAX_SHOWN_ERRORS:
            self.first.append(line)


def _print_json(report: IndexReport, invalid: _InvalidLines, documents: int | None) -> None:
    outcome: dict[str, object] = {
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
            raise IsADirectoryError(f"{path} is a folder without {' or '.join(CORPUS_FILES)}")
        yield parse_corpus(corpus), count_lines(corpus)
        return
    with nullcontext(sys.stdin.buffer) if path == "-" else folder.open("rb") as file:
        yield parse_ndjson(file), None
