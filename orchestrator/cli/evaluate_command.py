"""``trivium evaluate``, ``trivium tune`` and ``trivium compare``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import anyio
import msgspec
import typer
from rich.markup import escape

from adapters.ports.optional_packages import extra
from orchestrator.bootstrap import open_service
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import err, out, reported_errors
from orchestrator.evaluation.dataset import BadDataset, Dataset, read_dataset
from orchestrator.indexing.corpus import count_lines
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load, read_settings_file

if TYPE_CHECKING:
    from orchestrator.evaluation.comparison import Difference
    from orchestrator.evaluation.judged_runs import Evaluation
    from orchestrator.evaluation.trec import Run
    from orchestrator.evaluation.workspace import ResultStore, Workspace

_MAX_QUERY_CHARS = 1_000_000
"""Queries of data sets may be longer than the API allows."""

Folder = Annotated[
    Path,
    typer.Argument(
        help="a folder with judged queries as BEIR has them, and a BEIR corpus with its graph files, if it has any, or "
        "documents.ndjson"
    ),
]


class NotAShard(ValueError):
    """``--shard`` is not of the form ``k/n``."""


class DuplicateRun(ValueError):
    """A run file has the name of another run."""


def evaluate(
    folder: Folder,
    run: Annotated[list[Path] | None, typer.Option(help="a TREC run file to measure too; may be repeated")] = None,
    against: Annotated[Path | None, typer.Option(help="a TREC run file that every run is compared with")] = None,
    report: Annotated[Path | None, typer.Option(help="write an HTML report to this file")] = None,
    export: Annotated[Path | None, typer.Option(help="write every run and the judgments as TREC files here")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="processes that search")] = 1,
    shard: Annotated[str | None, typer.Option(help="k/n: run only this part of the queries, and stop")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Index a data set, run its queries, and measure each source alone and all together."""
    with _evaluation_errors(), _timed():
        # Imported here: it takes a second, and other commands do not need it.
        from orchestrator.evaluation import judged_runs as figures  # noqa: PLC0415
        from orchestrator.evaluation import runner, runs  # noqa: PLC0415
        from orchestrator.evaluation.report import write_report  # noqa: PLC0415

        part = None if shard is None else _parse_shard(shard)
        dataset = read_dataset(folder)
        external = _read_runs([*(run or ()), *((against,) if against else ())], set(runs.RUNS))
        workspace, documents, store = _prepare(load(), dataset)
        total = len(dataset.queries) * len(runs.RUNS)
        if part is not None:
            own = len(range(part[0], len(dataset.queries), part[1])) * len(runs.RUNS)
            with progress_bar(err, "searching", "queries", own) as advance:
                anyio.run(runner.run_shard, _open_service, workspace, store, *part, advance)
            return
        with progress_bar(err, "searching", "queries", total) as advance:
            runner.run_all(_open_service, workspace, store, workers, advance)
        results = runner.collect(workspace, store)
        anyio.run(workspace.remove_from_servers, _open_service)
        ranked = figures.as_runs(results, dataset)
        by_run = figures.measure_runs({**ranked, **external}, dataset)
        evaluation = figures.evaluate(
            dataset, by_run, results, documents, workspace.graph_trust(), against.stem if against else None
        )
        if as_json:
            sys.stdout.write(msgspec.json.encode(evaluation).decode() + "\n")
        else:
            _print(evaluation)
        if export:
            figures.export(export, ranked, dataset)
        if report:
            write_report(report, evaluation, dataset, by_run, results)


def tune(
    folder: Folder,
    output: Annotated[Path, typer.Option(help="where the settings are written, for TRIVIUM_SETTINGS_FILE")] = Path(
        "trivium.env"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Choose fusion, weights and boosts on half of a data set's queries; write them if the other half shows a gain."""
    with _evaluation_errors(), _timed():
        from orchestrator.evaluation import tuning  # noqa: PLC0415  # see evaluate

        dataset = read_dataset(folder)
        if not output.parent.is_dir():
            raise NotADirectoryError(f"{output} cannot be written: {output.parent} is not a folder")
        workspace, _, _ = _prepare(load(), dataset)

        async def search() -> tuning.TuningResult:
            async with _open_service(workspace.settings) as service:
                with progress_bar(err, "trying", "candidates", None) as advance:
                    return await tuning.tune(service, dataset, advance)

        with reported_errors(usage_errors=(tuning.TooFewQueries,)):
            result = anyio.run(search)
            anyio.run(workspace.remove_from_servers, _open_service)
        if result.supported:
            output.write_text(tuning.as_settings_file(result.changed), "utf-8")
    if as_json:
        outcome = {**msgspec.to_builtins(result), "supported": result.supported}
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        return
    for half, difference in (("training", result.training), ("held out", result.held_out)):
        out.print(
            f"{half}: {difference.baseline:.4f} -> {difference.value:.4f} ({_shown(difference)})", highlight=False
        )
    if result.supported:
        out.print(
            f"[green]a significant gain on the held-out half[/green], after {result.tried} candidates; in {output}:"
        )
        out.print(tuning.as_settings_file(result.changed), markup=False, highlight=False, end="")
    else:
        out.print(f"no significant gain on the held-out half, after {result.tried} candidates: nothing was written")


def compare(
    folder: Folder,
    settings: Annotated[
        list[Path], typer.Option(help="a file of settings, as for TRIVIUM_SETTINGS_FILE; must be given twice")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Search judged queries with two files of settings and compare the results. The files override the environment."""
    with _evaluation_errors(), _timed():
        from orchestrator.evaluation import settings_comparison as comparing  # noqa: PLC0415  # see evaluate

        with reported_errors(usage_errors=(comparing.NotComparable,)):
            if len(settings) != 2:
                raise comparing.NotComparable(f"--settings is given {len(settings)} times, it must be given twice")
            first, second = (
                comparing.Variant(str(path), load(**read_settings_file(path, "--settings"))) for path in settings
            )
            comparing.require_comparable(first, second)
            dataset = read_dataset(folder)
            one, documents, _ = _prepare(first.settings, dataset)
            other, _, _ = _prepare(second.settings, dataset)
            with progress_bar(err, "searching", "queries", 2 * len(dataset.queries)) as advance:
                outcome = anyio.run(
                    comparing.compare_settings,
                    _open_service,
                    comparing.Variant(first.name, one.settings),
                    comparing.Variant(second.name, other.settings),
                    dataset,
                    documents,
                    advance,
                )
            for each in (one, other):
                anyio.run(each.remove_from_servers, _open_service)
    if as_json:
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        return
    out.print(f"{outcome.dataset}: {outcome.queries} queries, {outcome.documents} documents", highlight=False)
    for name, value in ((first.name, outcome.quality.baseline), (second.name, outcome.quality.value)):
        out.print(f"{escape(name)}: nDCG@10 {value:.4f}, median {outcome.median_ms[name]:.1f} ms", highlight=False)
    out.print(f"difference: {_shown(outcome.quality)}", highlight=False)
    out.print(f"{escape(outcome.winner)} is better" if outcome.winner else "no significant difference")


def _shown(difference: Difference) -> str:
    return (
        f"{difference.difference:+.4f}, 95 % {difference.interval[0]:+.4f} to {difference.interval[1]:+.4f}, "
        f"p {difference.p:.4f}"
    )


def _open_service(settings: Settings) -> AbstractAsyncContextManager[Service]:
    return open_service(settings, max_query_chars=_MAX_QUERY_CHARS)


def _prepare(settings: Settings, dataset: Dataset) -> tuple[Workspace, int, ResultStore]:
    from orchestrator.evaluation.workspace import Workspace  # noqa: PLC0415  # see evaluate

    workspace = Workspace.of(settings, dataset)
    with progress_bar(err, "encoding", "documents", count_lines(dataset.corpus)) as advance:
        indexed = anyio.run(workspace.index, _open_service, advance)
    if indexed.rejected:
        err.print(f"[yellow]{indexed.rejected} invalid lines of the corpus were skipped[/yellow]")
    return workspace, indexed.documents, workspace.results(indexed.build_id)


def _read_runs(paths: list[Path], taken: set[str]) -> dict[str, Run]:
    """The run files by name, which must be unique."""
    from orchestrator.evaluation.trec import read_run  # noqa: PLC0415  # see evaluate

    runs: dict[str, Run] = {}
    for path in paths:
        if path.stem in taken | runs.keys():
            raise DuplicateRun(f"{path}: there is already a run {path.stem!r}, give the file another name")
        runs[path.stem] = read_run(path)
    return runs


def _parse_shard(value: str) -> tuple[int, int]:
    """``k/n`` as the number of the shard, from 0, and the number of shards."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", value)
    shard, shards = (int(each) for each in match.groups()) if match else (0, 0)
    if not 1 <= shard <= shards:
        raise NotAShard(f"--shard is {value!r}, write k/n with k from 1 to n")
    return shard - 1, shards


@contextmanager
def _timed() -> Iterator[None]:
    """Print how long it took."""
    start = monotonic()
    yield
    err.print(f"took {duration(monotonic() - start)}", highlight=False)


@contextmanager
def _evaluation_errors() -> Iterator[None]:
    from orchestrator.evaluation.runner import IncompleteRun  # noqa: PLC0415  # see evaluate

    with (
        reported_errors(usage_errors=(BadDataset, NotAShard, DuplicateRun), failures=(IncompleteRun, BrokenExecutor)),
        extra("evaluate"),
    ):
        yield


def _print(evaluation: Evaluation) -> None:
    """Print the figures as tables."""
    from orchestrator.evaluation.comparison import SIGNIFICANCE  # noqa: PLC0415  # see evaluate

    title = f"[bold]{escape(evaluation.dataset)}[/bold]: {evaluation.queries} queries, {evaluation.documents} documents"
    names = ("run", *next(iter(evaluation.runs.values())), "sources")
    rows = []
    for run, values in evaluation.runs.items():
        sources = f"{evaluation.sources_per_query[run]:.2f}" if run in evaluation.sources_per_query else "-"
        rows.append((run, *(f"{value:.4f}" for value in values.values()), sources))
    print_table(out, [Column(name) for name in names], rows, title)
    differences = []
    for each in evaluation.comparisons:
        relative = "" if each.relative is None else f" ({each.relative:+.1%})"
        differences.append(
            (
                f"{each.run} - {each.against}",
                f"{each.difference:+.4f}{relative}",
                f"{each.interval[0]:+.4f} {each.interval[1]:+.4f}",
                f"{each.p:.4f}{'*' if each.p < SIGNIFICANCE else ' '}",
                str(each.wins),
                str(each.losses),
            )
        )
    names = ("run - against", "difference", "95 % interval", "p", "wins", "losses")
    print_table(out, [Column(name) for name in names], differences, "differences in nDCG@10, paired")
    out.print("[dim]* p < 0.05 in a two-sided paired randomisation test, without correction for several tests[/dim]")
