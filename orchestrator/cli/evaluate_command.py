"""``trivium evaluate``: every source alone, pairs, and all together, on judged queries."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.markup import escape

from orchestrator.cli.judged_search import Searched, search_dataset, search_own_index, search_service
from orchestrator.cli.judged_sets import evaluation_command
from orchestrator.cli.scope_options import Environment, Tenant, require_one_caller
from orchestrator.cli.terminal import err
from orchestrator.evaluation.judgments import read_judged_queries
from orchestrator.evaluation.runs import RUNS
from orchestrator.planning.errors import BadRequest

if TYPE_CHECKING:
    from orchestrator.evaluation.trec import Run


class NotAShard(ValueError):
    """``--shard`` is not of the form ``k/n``."""


class DuplicateRun(ValueError):
    """A run file has the name of another run."""


def evaluate(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="a folder with documents.ndjson or a BEIR corpus and its graph files, queries.jsonl, and judgments; "
            "or --queries and --qrels, to search the documents that are indexed"
        ),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="a file of queries, one JSON object on each line")] = None,
    qrels: Annotated[Path | None, typer.Option(help="a file of judgments: query, document and relevance")] = None,
    *,
    tenant: Tenant = None,
    environment: Environment = None,
    key: Annotated[str | None, typer.Option(help="search as the caller with this API key")] = None,
    url: Annotated[str | None, typer.Option(help="search at a running service, such as http://127.0.0.1:8080")] = None,
    run: Annotated[list[Path] | None, typer.Option(help="a TREC run file to measure too; may be repeated")] = None,
    against: Annotated[Path | None, typer.Option(help="a TREC run file that every run is compared with")] = None,
    report: Annotated[Path | None, typer.Option(help="write an HTML report to this file")] = None,
    export: Annotated[Path | None, typer.Option(help="write every run and the judgments as TREC files here")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="processes that search")] = 1,
    shard: Annotated[str | None, typer.Option(help="k/n: run only this part of the queries, and stop")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Search judged queries, and measure each source alone and all together."""
    with evaluation_command(NotAShard, DuplicateRun):
        # Imported here: it takes a second, and other commands do not need it.
        from orchestrator.cli.evaluation_tables import print_evaluation  # noqa: PLC0415
        from orchestrator.evaluation import judged_runs as figures  # noqa: PLC0415
        from orchestrator.evaluation.report import write_report  # noqa: PLC0415

        if report and not report.parent.is_dir():
            raise BadRequest(f"--report cannot be written: {report.parent} is not a folder")

        external = _read_runs([*(run or ()), *((against,) if against else ())], set(RUNS))
        part = None if shard is None else _parse_shard(shard)
        require_one_caller(tenant, environment, key, url)
        if folder is None:
            if part is not None or workers > 1:
                raise BadRequest("--shard and --workers are for a FOLDER")
            searched: Searched | None = _search_indexed(queries, qrels, (tenant, environment, key), url)
        else:
            if any((queries, qrels, tenant, environment, key, url)):
                raise BadRequest(
                    "give a FOLDER with documents, or --queries and --qrels, with --url, --tenant or --key"
                )
            searched = search_dataset(folder, workers, part)
        if searched is None:
            return
        for name, external_run in external.items():
            if problem := figures.coverage_problem(external_run, searched.judged):
                err.print(f"[yellow]{escape(f'{name}: {problem}; what is missing counts 0')}[/yellow]", soft_wrap=True)
        ranked = figures.as_runs(searched.results, searched.judged)
        by_run = figures.measure_runs({**ranked, **external}, searched.judged)
        evaluation = figures.evaluate(
            searched.judged,
            by_run,
            searched.results,
            searched.conditions,
            searched.titles,
            against.stem if against else None,
        )
        if as_json:
            sys.stdout.write(msgspec.json.encode(evaluation).decode() + "\n")
        else:
            print_evaluation(evaluation)
        if export:
            figures.export(export, ranked, searched.judged)
        if report:
            write_report(report, evaluation, searched.judged, by_run, searched.results, searched.titles)


def _search_indexed(
    queries: Path | None, qrels: Path | None, caller: tuple[str | None, str | None, str | None], url: str | None
) -> Searched:
    """Search the documents that are indexed here, or those of a service.

    :param caller: tenant, environment and key.
    """
    if queries is None or qrels is None:
        raise BadRequest("nothing to evaluate: give a FOLDER, or both --queries and --qrels")
    judged = read_judged_queries(queries.stem, queries, qrels)
    return search_own_index(judged, *caller) if url is None else search_service(judged, url, caller[-1])


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
