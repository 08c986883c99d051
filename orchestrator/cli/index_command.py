"""``trivium index``: the same rules as ``POST /v1/documents``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import Annotated

import msgspec
import typer
from rich.markup import escape

from adapters import Scope
from orchestrator.cli.files_command import FileOptions, files_of, index_files
from orchestrator.cli.progress import progress_bar
from orchestrator.cli.scope_options import Environment, Tenant, checked_name, owner
from orchestrator.cli.terminal import err, out, reported_errors, with_cli_timeout, with_service
from orchestrator.cli.written_documents import (
    is_applied,
    optimized_count,
    print_unapplied,
    print_where,
    require_own_build,
    unapplied,
)
from orchestrator.indexing.chunks import DEFAULT_CHUNK_TOKENS, MAX_CHUNK_TOKENS, MIN_CHUNK_TOKENS
from orchestrator.indexing.corpus import corpus_file, count_lines, in_collection, parse_corpus
from orchestrator.indexing.folder.walk import NoFiles
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, parse_ndjson
from orchestrator.indexing.not_ndjson import HEAD_BYTES, describe
from orchestrator.planning.errors import BadRequest
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.folders import Missing
from orchestrator.service.service import Service
from orchestrator.settings.loading import load

_MAX_SHOWN_ERRORS = 20
_MAX_SHOWN_COLLECTIONS = 5


class NoDocuments(ValueError):
    """A file or folder has no documents; the message says what it is, and what to do."""


def index(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="folders and files: Markdown, HTML, reStructuredText, text, source code, PDF; or an NDJSON file, - "
            "for standard input, or a folder with documents.ndjson or a BEIR corpus",
            metavar="PATH...",
            show_default=False,
        ),
    ],
    *,
    tenant: Tenant = None,
    environment: Environment = None,
    collection: Annotated[str | None, typer.Option(help="a collection instead of documents, the default one")] = None,
    chunk_tokens: Annotated[
        int | None,
        typer.Option(
            help=f"files with more tokens are split into chunks of so many, {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS}; "
            f"{DEFAULT_CHUNK_TOKENS} by default",
        ),
    ] = None,
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="keep the documents of files that are gone")
    ] = False,
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="remove them even if another folder may have the files")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="go on, and index files as they change, until Ctrl-C")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Add documents, replacing those with the same id; what is invalid is reported, the rest is indexed.

    Of a folder, only files that changed are read into the index again, and what is gone is removed.
    """
    with reported_errors(failures=(NoFiles,)):
        if collection is not None:
            checked_name("collection", collection)
        tokens = DEFAULT_CHUNK_TOKENS if chunk_tokens is None else chunk_tokens
        if not MIN_CHUNK_TOKENS <= tokens <= MAX_CHUNK_TOKENS:
            raise BadRequest(f"--chunk-tokens: {tokens}, allowed are {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS}")
        files = files_of(paths)
        options = {
            "watch": watch,
            "keep-missing": keep_missing,
            "remove-missing": remove_missing,
            "chunk-tokens": chunk_tokens is not None,
        }
        if files is None and (given := [name for name, is_given in options.items() if is_given]):
            raise BadRequest(f"--{given[0]} is for folders of files")
        if keep_missing and remove_missing:
            raise BadRequest("--keep-missing and --remove-missing cannot both be given")
    if files is not None:
        missing: Missing = "keep" if keep_missing else "force" if remove_missing else "remove"
        index_files(files, FileOptions(tenant, environment, collection, tokens, missing, as_json), watch)
    else:
        _index_lines(paths[0], tenant, environment, collection, as_json)


def _index_lines(path: str, tenant: str | None, environment: str | None, collection: str | None, as_json: bool) -> None:
    invalid, start = _InvalidLines(), monotonic()
    collections: Counter[str] = Counter()
    with reported_errors(failures=(NoDocuments,)), _lines(path) as (lines, total):

        async def run(service: Service) -> tuple[IndexReport, Scope, int | None]:
            writer = owner(service, tenant, environment)
            require_own_build(service)
            with progress_bar(err, "encoding", "documents", total) as advance:
                counted = _counted(in_collection(lines, collection), collections)
                report = await service.documents.index(counted, writer, invalid.add, advance)
            return report, writer.scope, await optimized_count(service)

        report, scope, documents = with_service(with_cli_timeout(load()), run, writes=True)
    if as_json:
        _print_json(report, invalid, documents, scope, collections)
    else:
        _print(report, invalid, documents)
        named = [name for name, _ in collections.most_common(_MAX_SHOWN_COLLECTIONS)]
        more = f" and {len(collections) - len(named)} more" if len(collections) > len(named) else ""
        print_where(scope, f"collection {', '.join(named)}{more}" if named else "nothing written", monotonic() - start)
    is_complete = documents is not None and not invalid.count and is_applied(report)
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
        **unapplied(report),
    }
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")


def _print(report: IndexReport, invalid: _InvalidLines, documents: int | None) -> None:
    for line in invalid.first:
        err.print(f"[red]line {line.line}: {escape(line.error)}[/red]", soft_wrap=True)
    if invalid.count > len(invalid.first):
        err.print(f"[red]and {invalid.count - len(invalid.first)} more[/red]")
    print_unapplied(report)
    total = "" if documents is None else f"; the index has {documents} documents"
    pending = f", {len(report.undecided)} pending" if report.undecided else ""
    out.print(f"{report.indexed} indexed{pending}, {invalid.count} rejected{total}")


@contextmanager
def _lines(path: str) -> Iterator[tuple[Iterable[ParsedLine], int | None]]:
    """The parsed lines of a file, standard input or folder, and their number if it is known."""
    if path != "-" and (corpus := corpus_file(Path(path))):
        yield parse_corpus(corpus), count_lines(corpus)
        return
    with BufferedReader(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:  # type: ignore[type-var, arg-type]
        if what := describe(file.peek(HEAD_BYTES)[:HEAD_BYTES]):
            raise NoDocuments(f"{'standard input' if path == '-' else path} is {what}")
        yield parse_ndjson(file), None if path == "-" else count_lines(Path(path))
