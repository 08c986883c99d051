"""``trivium index FOLDER``: the documents of files, kept as the files are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec
import typer
from rich.markup import escape
from watchfiles import watch as changes

from adapters import AdapterError, Scope, Sensitivity
from adapters.model.errors import reason_of
from adapters.model.protection import is_visible
from fusion.doc_ids import DEFAULT_COLLECTION
from orchestrator.cli.progress import progress_bar
from orchestrator.cli.scope_options import owner
from orchestrator.cli.terminal import err, out, print_error, reported_errors, with_cli_timeout, with_service
from orchestrator.cli.written_documents import (
    is_applied,
    optimized_count,
    print_unapplied,
    print_where,
    require_own_build,
    unapplied,
)
from orchestrator.indexing.corpus import corpus_file
from orchestrator.indexing.folder.walk import FORMATS, FoundFiles, NamedPath, NoFiles, expanded, find
from orchestrator.indexing.not_ndjson import HEAD_BYTES, is_other_text
from orchestrator.planning.errors import BadRequest
from orchestrator.service.folders import FolderReport, Missing
from orchestrator.service.service import Service
from orchestrator.settings.loading import load

_MAX_SHOWN = 20
_START_MS = 500
"""Time without a change after which files are certainly watched."""
_FEW_LINKED = 0.5
"""Advice is printed if a smaller fraction of the files has a link."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """What the options of the command say."""

    tenant: str | None
    environment: str | None
    collection: str | None
    chunk_tokens: int
    missing: Missing
    as_json: bool


def files_of(paths: Sequence[str]) -> list[NamedPath] | None:
    """The files and folders to read; ``None`` if the only path has documents, one on each line, or may have.

    :raises NoFiles: if nothing is at a path, or one of several has documents on its lines.
    """
    if paths == ["-"]:
        return None
    found = expanded(paths)
    of_lines = [path for path, _ in found if _has_lines(path)]
    if of_lines and len(found) > 1:
        raise NoFiles(f"{of_lines[0]} has documents on its lines, and the others are files: index it by itself")
    return None if of_lines else found


def _has_lines(path: Path) -> bool:
    """Whether a path has documents one on each line, or something else that is no text."""
    if path.is_dir():
        return corpus_file(path) is not None
    if path.suffix.lower() in FORMATS:
        return False
    with path.open("rb") as file:
        return not is_other_text(file.read(HEAD_BYTES))


def index_files(paths: Sequence[NamedPath], options: FileOptions, watches: bool) -> None:
    """Index files, and with ``watches`` again whenever they change, until Ctrl-C."""
    with reported_errors(failures=(NoFiles,)):
        is_complete = _follow(paths, options) if watches else _run(paths, options)
    raise typer.Exit(0 if is_complete else 1)


def _follow(paths: Sequence[NamedPath], options: FileOptions) -> bool:
    """Index files as soon as they are watched, and again whenever they change, until Ctrl-C."""
    is_complete, is_first = True, True
    data_dir = load().storage.data_dir.resolve()
    watched = changes(
        *(path for path, _ in paths),
        watch_filter=lambda _, path: not Path(path).is_relative_to(data_dir),
        rust_timeout=_START_MS,
        yield_on_timeout=True,
    )
    with suppress(KeyboardInterrupt):  # also in the middle of a run, which the next one completes
        for changed in watched:
            if not changed and not is_first:
                continue
            try:
                is_complete = _run(paths, options, optimizes=is_first)
            except (NoFiles, BadRequest, AdapterError) as error:
                if is_first:
                    raise
                print_error(reason_of(error))
                is_complete = False  # the next change may mend it
            is_first = False
            err.print("watching for changes; Ctrl-C ends", highlight=False)
    return is_complete


def _run(paths: Sequence[NamedPath], options: FileOptions, optimizes: bool = True) -> bool:
    """Index files once; returns whether all of them are indexed.

    :param optimizes: whether segments are merged, and the documents measured, if anything has changed.
    """
    start = monotonic()
    settings = with_cli_timeout(load())
    found = find(paths, settings.storage.data_dir)
    if not found.files and not (options.missing == "force" and found.roots):
        names = ", ".join(str(path) for path, _ in paths)
        gone = "; if its files are gone, --remove-missing removes their documents" if found.roots else ""
        raise NoFiles(
            f"{names} has no files to index{_left_out(found)}: give a folder of documents, or an NDJSON file{gone}"
        )
    collection = options.collection or DEFAULT_COLLECTION

    async def run(service: Service) -> tuple[FolderReport, Scope, int | None]:
        writer = owner(service, options.tenant, options.environment)
        require_own_build(service)
        total = len(found.files)
        with progress_bar(err, "reading", "files", total) as advance:
            files = await service.folders.read(found, advance)
        with progress_bar(err, "indexing", "files", total) as advance:
            report = await service.folders.index(
                files, writer, collection, options.chunk_tokens, options.missing, advance
            )
        return report, writer.scope, await optimized_count(service, optimizes and report.written.generation > 0)

    report, scope, documents = with_service(settings, run, writes=True)
    if options.as_json:
        _print_json(report, scope, collection, documents)
    else:
        _print(report, documents, settings.access.open_clearance)
        print_where(scope, f"collection {collection}", monotonic() - start)
    return documents is not None and not report.errors and is_applied(report.written)


def _print(report: FolderReport, documents: int | None, clearance: Sensitivity) -> None:
    for problems, style in ((report.errors, "red"), (report.notes, "yellow")):
        for id_, reason in list(problems.items())[:_MAX_SHOWN]:
            err.print(f"[{style}]{escape(f'{id_}: {reason}')}[/{style}]", soft_wrap=True)
        if len(problems) > _MAX_SHOWN:
            err.print(f"[{style}]and {len(problems) - _MAX_SHOWN} more[/{style}]")
    print_unapplied(report.written)
    failed = f", {len(report.errors)} failed" if report.errors else ""
    total = "" if documents is None else f"; the index has {documents} documents"
    added = "1 file" if report.added == 1 else f"{report.added} files"
    out.print(
        f"{added} added, {report.changed} changed, {report.unchanged} unchanged, {report.removed} removed"
        f"{failed}; {report.chunks} chunks written{total}",
        soft_wrap=True,
    )
    for line in (*_left_out_lines(report), *_hidden_lines(report, clearance), *_graph_lines(report)):
        err.print(escape(line), soft_wrap=True, highlight=False)


def _left_out_lines(report: FolderReport) -> Iterator[str]:
    counts = [f"{reason} ({count})" for reason, count in report.left_out.most_common() if count]
    if counts:
        yield f"left out: {', '.join(counts)}"


def _hidden_lines(report: FolderReport, clearance: Sensitivity) -> Iterator[str]:
    """What a search here does not find."""
    for sensitivity, count in report.sensitivities.items():
        if not is_visible(sensitivity, clearance):
            files = "1 file is" if count == 1 else f"{count} files are"
            yield f"{files} {sensitivity}: searches here find them with TRIVIUM_OPEN_CLEARANCE={sensitivity} only"


def _graph_lines(report: FolderReport) -> Iterator[str]:
    """What the graph got."""
    share = len(report.linked) / report.files if report.files else 0.0
    examples = f" (such as {'; '.join(report.examples)})" if report.examples else ""
    links = "1 link" if report.links == 1 else f"{report.links} links"
    yield (
        f"graph: {links} between files, {report.dangling} that lead nowhere{examples}; "
        f"{report.names} names looked for in all texts; {share:.0%} of the files have a link"
    )
    if report.files > 1 and share < _FEW_LINKED:
        yield (
            "few files are linked: links in the text, [[names of pages]], and `related:` and `aliases:` in the front "
            "matter make the graph search better"
        )


def _left_out(found: FoundFiles) -> str:
    counts = ", ".join(f"{count} {reason}" for reason, count in found.left_out.most_common() if count)
    return f" ({counts} are left out)" if counts else ""


def _print_json(report: FolderReport, scope: Scope, collection: str, documents: int | None) -> None:
    outcome: dict[str, object] = {
        "tenant": scope.tenant,
        "environment": scope.environment,
        "collection": collection,
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "chunks": report.chunks,
        "documents": documents,
        "errors": report.errors,
        "notes": report.notes,
        "left_out": {reason: count for reason, count in report.left_out.items() if count},
        "links": report.links,
        "dangling": report.dangling,
        "names": report.names,
        "linked_files": len(report.linked),
        **unapplied(report.written),
    }
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
