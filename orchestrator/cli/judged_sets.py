"""What ``trivium evaluate``, ``tune`` and ``compare`` have in common: the data set, its index, errors, the time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, TypeAlias

import anyio
import typer
from rich.markup import escape

from adapters.ports.optional_packages import extra
from orchestrator.bootstrap.service import open_service
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.terminal import err, reported_errors
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.judgments import BadDataset
from orchestrator.evaluation.searched_index import IncompleteRun
from orchestrator.evaluation.workspace import IndexedCorpus, Workspace
from orchestrator.indexing.corpus import count_lines
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings

if TYPE_CHECKING:
    from orchestrator.evaluation.comparison import Difference

_MAX_QUERY_CHARS = 1_000_000
"""Queries of data sets may be longer than the API allows."""

Folder: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="a folder with documents.ndjson or a BEIR corpus and its graph files, queries.jsonl, and judgments"
    ),
]


def open_for_evaluation(settings: Settings) -> AbstractAsyncContextManager[Service]:
    """A service that accepts queries of any length. A function of a module, so that other processes can import it."""
    return open_service(settings, max_query_chars=_MAX_QUERY_CHARS)


def prepare(settings: Settings, dataset: Dataset) -> tuple[Workspace, IndexedCorpus]:
    """The workspace of a data set, with its index."""
    workspace = Workspace.of(settings, dataset)
    with progress_bar(err, "encoding", "documents", count_lines(dataset.corpus)) as advance:
        indexed = anyio.run(workspace.index, open_for_evaluation, advance)
    if indexed.rejected:
        first = f" (the first is {escape(indexed.first_rejected)})" if indexed.first_rejected else ""
        err.print(f"[yellow]{indexed.rejected} invalid lines were skipped{first}[/yellow]", soft_wrap=True)
    if indexed.repeated:
        message = f"{indexed.repeated} documents have the id of a later one, which counts: this changes the figures"
        err.print(f"[yellow]{message}[/yellow]", soft_wrap=True)
    return workspace, indexed


def shown(difference: Difference) -> str:
    """A difference, its interval and its p."""
    return (
        f"{difference.difference:+.4f}, 95 % {difference.interval[0]:+.4f} to {difference.interval[1]:+.4f}, "
        f"p {difference.p:.4f}"
    )


@contextmanager
def evaluation_command(*usage_errors: type[Exception]) -> Iterator[None]:
    """Report errors in one line, and print how long the command took.

    :param usage_errors: errors of wrong use besides those of every evaluation.
    """
    start = monotonic()
    with (
        reported_errors(usage_errors=(BadDataset, *usage_errors), failures=(IncompleteRun, BrokenExecutor)),
        extra("evaluate"),
    ):
        yield
        err.print(f"took {duration(monotonic() - start)}", highlight=False)
