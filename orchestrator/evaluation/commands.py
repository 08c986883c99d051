"""``trivium evaluate`` and ``trivium tune``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from adapters import Unavailable
from orchestrator import settings as settings_
from orchestrator.evaluation.dataset import BadDataset, Dataset, read
from orchestrator.progress import bar
from orchestrator.terminal import err, out, told
from orchestrator.wiring import opened

if TYPE_CHECKING:
    from orchestrator.evaluation.evaluate import Evaluation
    from orchestrator.evaluation.trec import Run
    from orchestrator.evaluation.work import Answers, Work

_CERTAIN = 0.05
Folder = Annotated[Path, typer.Argument(help="a BEIR folder with judged queries, and its graph files if it has any")]


class NotAShard(ValueError):
    """``--shard`` is not of the form ``k/n``."""


class NameTaken(ValueError):
    """A run file has the name of another run."""


def evaluate(
    folder: Folder,
    run: Annotated[list[Path] | None, typer.Option(help="a TREC run file to judge too; may be given again")] = None,
    against: Annotated[Path | None, typer.Option(help="a TREC run file that every run is compared with")] = None,
    report: Annotated[Path | None, typer.Option(help="write an HTML report to this file")] = None,
    export: Annotated[Path | None, typer.Option(help="write every run and the judgments as TREC files here")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="processes that ask")] = 1,
    shard: Annotated[str | None, typer.Option(help="k/n: ask only this part of the queries, and stop")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Index a data set, ask its queries of the engine, and print what each source and all together are worth."""
    with _told():
        from orchestrator.evaluation import evaluate as figures  # noqa: PLC0415
        from orchestrator.evaluation import report as report_  # noqa: PLC0415  # plots: half a second
        from orchestrator.evaluation import runner, runs  # noqa: PLC0415

        part = None if shard is None else _part(shard)
        dataset = read(folder)
        given = _named([*(run or ()), *((against,) if against else ())], set(runs.RUNS))
        work, documents, answers = _prepared(dataset)
        total = len(dataset.queries) * len(runs.RUNS)
        if part is not None:
            with bar(err, "asking", "queries", None) as advance:
                anyio.run(runner.ask_shard, work, answers, *part, advance)
            return
        with bar(err, "asking", "queries", total) as advance:
            runner.ask_all(work, answers, workers, advance)
        found = runner.collect(work, answers)
        ranked = figures.as_runs(found, dataset)
        by_run = figures.judged({**ranked, **given}, dataset)
        measured = figures.evaluate(
            dataset, by_run, figures.asked(found), documents, work.guard(), against.stem if against else None
        )
        if as_json:
            sys.stdout.write(msgspec.json.encode(measured).decode() + "\n")
        else:
            _show(measured)
        if export:
            figures.export(export, ranked, dataset)
        if report:
            report_.write(report, measured, dataset, by_run, found)


def tune(
    folder: Folder,
    output: Annotated[Path, typer.Option(help="where the settings are written, for TRIVIUM_SETTINGS_FILE")] = Path(
        "trivium.env"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="print what was found as JSON")] = False,
) -> None:
    """Choose fusion, weights and boosts on half of a data set's queries; keep them if the other half agrees."""
    with _told():
        from orchestrator.evaluation import tune as tuning  # noqa: PLC0415  # measures: a second

        dataset = read(folder)
        if not output.parent.is_dir():
            raise NotADirectoryError(f"{output.parent} is no folder that {output.name} could be written to")
        work, _, _ = _prepared(dataset)

        async def search() -> tuning.Tuned:
            async with opened(work.settings) as service:
                with bar(err, "trying", "candidates", None) as advance:
                    return await tuning.tune(service, dataset, advance)

        with told(wrong_use=(tuning.TooFew,)):
            found = anyio.run(search)
        if found.supported:
            output.write_text(tuning.as_environment(found.changed), "utf-8")
    if as_json:
        told_ = {**msgspec.to_builtins(found), "supported": found.supported}
        sys.stdout.write(msgspec.json.encode(told_).decode() + "\n")
        return
    for half, each in (("chosen on", found.training), ("held out", found.held_out)):
        out.print(
            f"{half}: {each.baseline:.4f} -> {each.value:.4f} ({each.difference:+.4f}, "
            f"95 % {each.interval[0]:+.4f} to {each.interval[1]:+.4f}, p {each.p:.4f})",
            highlight=False,
        )
    if found.supported:
        out.print(
            f"[green]a gain that the held-out half supports[/green], after {found.tried} candidates; in {output}:"
        )
        out.print(tuning.as_environment(found.changed), markup=False, highlight=False, end="")
    else:
        out.print(f"no gain that the held-out half supports, after {found.tried} candidates: nothing was written")


def _prepared(dataset: Dataset) -> tuple[Work, int, Answers]:
    from orchestrator.evaluation.work import Work  # noqa: PLC0415

    work = Work.of(settings_.read(), dataset)
    with (dataset.folder / "corpus.jsonl").open("rb") as corpus:
        total = sum(1 for _ in corpus)
    with bar(err, "encoding", "documents", total) as advance:
        indexed = anyio.run(work.index, advance)
    if indexed.rejected:
        err.print(f"[yellow]{indexed.rejected} lines of the corpus were left out[/yellow]")
    return work, indexed.documents, work.answers(indexed.index_version)


def _named(paths: list[Path], taken: set[str]) -> dict[str, Run]:
    """Run files by their name, which no other run may have."""
    from orchestrator.evaluation.trec import read_run  # noqa: PLC0415

    given: dict[str, Run] = {}
    for path in paths:
        if path.stem in taken | given.keys():
            raise NameTaken(f"{path}: there is a run {path.stem!r} already, give the file another name")
        given[path.stem] = read_run(path)
    return given


def _part(written: str) -> tuple[int, int]:
    """``k/n`` as the shard, from 0, and how many there are."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", written)
    shard, shards = (int(each) for each in match.groups()) if match else (0, 0)
    if not 1 <= shard <= shards:
        raise NotAShard(f"--shard is {written!r}, write k/n with k from 1 to n")
    return shard - 1, shards


@contextmanager
def _told() -> Iterator[None]:
    from orchestrator.evaluation.runner import NotWhole  # noqa: PLC0415

    try:
        with told(wrong_use=(BadDataset, NotAShard, NameTaken), not_well=(NotWhole, BrokenExecutor)):
            yield
    except ImportError as error:
        with told():
            raise Unavailable(f"{error.name} is not installed: pip install 'trivium[evaluate]'") from error


def _show(measured: Evaluation) -> None:
    """The figures as tables."""
    title = f"[bold]{escape(measured.dataset)}[/bold]: {measured.queries} queries, {measured.documents} documents"
    table = Table(title=title, title_justify="left")
    table.add_column("run", no_wrap=True)
    for name in (*next(iter(measured.runs.values())), "asked"):
        table.add_column(name, justify="right", no_wrap=True)
    for run, values in measured.runs.items():
        count = f"{measured.asked[run]:.2f}" if run in measured.asked else "-"
        table.add_row(escape(run), *(f"{value:.4f}" for value in values.values()), count)
    out.print(table)
    differences = Table(title="differences in nDCG@10, paired", title_justify="left")
    differences.add_column("run - against", no_wrap=True)
    for name in ("difference", "95 % interval", "p", "won", "lost"):
        differences.add_column(name, justify="right", no_wrap=True)
    for each in measured.comparisons:
        relative = "" if each.relative is None else f" ({each.relative:+.1%})"
        differences.add_row(
            escape(f"{each.run} - {each.against}"),
            f"{each.difference:+.4f}{relative}",
            f"{each.interval[0]:+.4f} {each.interval[1]:+.4f}",
            f"{each.p:.4f}{'*' if each.p < _CERTAIN else ' '}",
            str(each.wins),
            str(each.losses),
        )
    out.print(differences)
    out.print("[dim]* under .05 by a paired randomisation test, two-sided, each by itself[/dim]")
