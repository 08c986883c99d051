"""``trivium tune`` and ``trivium compare``: which settings suit judged queries."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import msgspec
import typer
from rich.markup import escape

from orchestrator.cli.judged_sets import Folder, evaluation_command, open_for_evaluation, prepare, shown
from orchestrator.cli.progress import Advance, progress_bar
from orchestrator.cli.terminal import err, out, reported_errors
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.planning.defaults import default_profile
from orchestrator.settings.loading import load, read_settings_file

if TYPE_CHECKING:
    from orchestrator.evaluation.comparison import Difference
    from orchestrator.evaluation.learning import LearningResult
    from orchestrator.evaluation.settings_comparison import SettingsComparison
    from orchestrator.evaluation.tuning import TuningResult

_MEASURED = "nDCG@10 of requests in mode auto, as callers send them: the run auto of `trivium evaluate`"


def tune(
    folder: Folder,
    output: Annotated[
        Path | None,
        typer.Option(
            help="where the settings are written, for TRIVIUM_SETTINGS_FILE (trivium.env by default); with --learn: "
            "the file for TRIVIUM_FUSION=learned(FILE) (learned.json by default)"
        ),
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="learn trees that correct the fusion, instead of choosing settings")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Choose fusion, weights and boosts on half of a data set's queries; write them if the other half shows a gain."""
    with evaluation_command():
        from orchestrator.evaluation import learning, tuning  # noqa: PLC0415  # see evaluate

        dataset = read_dataset(folder)
        path = output or Path("learned.json" if learn else "trivium.env")
        if not path.parent.is_dir():
            raise NotADirectoryError(f"{path} cannot be written: {path.parent} is not a folder")
        with reported_errors(usage_errors=(tuning.TooFewQueries, learning.AlreadyLearned)):
            tuning.halves(dataset)
            if learn:
                learning.require_named(default_profile(load()).fusion)
                learning.load_lightgbm()
        workspace, _ = prepare(load(), dataset)

        async def outcome() -> tuple[tuning.TuningResult | learning.LearningResult, bytes]:
            async with open_for_evaluation(workspace.settings) as service:
                if learn:
                    with progress_bar(err, "searching", "queries", 2 * len(dataset.queries)) as advance:
                        return await learning.learn(service, dataset, advance)
                tuned = await tuning.tune(service, dataset, _round)
                return tuned, tuning.as_settings_file(tuned.changed).encode()

        result, content = anyio.run(outcome)
        anyio.run(workspace.remove_from_servers, open_for_evaluation)
        if not result.objection:
            path.write_bytes(content)
        if as_json:
            printed = {**msgspec.to_builtins(result), "supported": not result.objection, "objection": result.objection}
            sys.stdout.write(msgspec.json.encode(printed).decode() + "\n")
        elif isinstance(result, learning.LearningResult):
            _print_learning(result, path)
        else:
            _print_tuning(result, path)


def compare(
    folder: Folder,
    settings: Annotated[
        list[Path], typer.Option(help="a file of settings, as for TRIVIUM_SETTINGS_FILE; must be given twice")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Search judged queries with two files of settings and compare the results. The files override the environment."""
    with evaluation_command():
        from orchestrator.evaluation import settings_comparison as comparing  # noqa: PLC0415  # see evaluate

        with reported_errors(usage_errors=(comparing.NotComparable,)):
            if len(settings) != 2:
                raise comparing.NotComparable(f"--settings is given {len(settings)} times, it must be given twice")
            first, second = (
                comparing.Variant(str(path), load(**read_settings_file(path, "--settings"))) for path in settings
            )
            comparing.require_comparable(first, second)
            dataset = read_dataset(folder)
            one, indexed = prepare(first.settings, dataset)
            other, _ = prepare(second.settings, dataset)
            with progress_bar(err, "searching", "queries", 2 * len(dataset.queries)) as advance:
                outcome = anyio.run(
                    comparing.compare_settings,
                    open_for_evaluation,
                    comparing.Variant(first.name, one.settings),
                    comparing.Variant(second.name, other.settings),
                    dataset,
                    indexed.documents,
                    advance,
                )
            for each in (one, other):
                anyio.run(each.remove_from_servers, open_for_evaluation)
        if as_json:
            sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        else:
            _print_comparison(outcome)


def _round(number: int, candidates: int) -> AbstractContextManager[Advance]:
    return progress_bar(err, f"round {number}", "candidates", candidates)


def _print_tuning(result: TuningResult, output: Path) -> None:
    from orchestrator.evaluation import tuning  # noqa: PLC0415  # see evaluate

    best = tuning.as_settings_file(result.changed).splitlines() or ["the settings as they are"]
    out.print(f"the best of {result.tried} candidates:", highlight=False)
    for line in best:
        out.print(escape(line), highlight=False, soft_wrap=True)
    used = "used once TRIVIUM_SETTINGS_FILE names it, or its lines are in the file that it names"
    _print_gain(result.training, result.held_out, result.objection, output, used)


def _print_learning(result: LearningResult, output: Path) -> None:
    out.print(f"{result.trees} trees, which correct {result.base}", highlight=False, soft_wrap=True)
    used = f"used with TRIVIUM_FUSION='learned({output.absolute()})'"
    _print_gain(result.training, result.held_out, result.objection, output, used)


def _print_gain(training: Difference, held_out: Difference, objection: str, output: Path, used: str) -> None:
    """Both halves, and whether the outcome is kept. ``used``: how a service uses the file."""
    for half, difference in (("training", training), ("held-out", held_out)):
        queries = difference.wins + difference.losses + difference.ties
        out.print(
            f"{half} half, {queries} queries: {difference.baseline:.4f} -> {difference.value:.4f} "
            f"({shown(difference)})",
            highlight=False,
        )
    out.print(f"[dim]{_MEASURED}[/dim]", highlight=False)
    if objection:
        out.print(f"[yellow]not kept: {escape(objection)}[/yellow]; nothing was written", highlight=False)
    else:
        out.print(f"[green]kept: a significant gain on the held-out half[/green]; written to {escape(str(output))}")
        out.print(
            f"[dim]{escape(used)}. `trivium compare` on this folder would count the half that it was chosen on: take "
            "other queries.[/dim]",
            highlight=False,
            soft_wrap=True,
        )


def _print_comparison(outcome: SettingsComparison) -> None:
    out.print(f"{outcome.dataset}: {outcome.queries} queries, {outcome.documents} documents", highlight=False)
    quality = outcome.quality
    for name, value in ((quality.against, quality.baseline), (quality.run, quality.value)):
        out.print(f"{escape(name)}: nDCG@10 {value:.4f}, median {outcome.median_ms[name]:.1f} ms", highlight=False)
    out.print(f"difference: {shown(quality)}", highlight=False)
    out.print(f"[dim]{_MEASURED}[/dim]", highlight=False)
    out.print(f"{escape(outcome.winner)} is better" if outcome.winner else "no significant difference")
