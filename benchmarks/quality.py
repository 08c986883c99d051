"""``make bench-quality``: hybrid search against every single source on judged data sets, by ``trivium evaluate``.

Prints the figures of the reference run, its gain over the best single source and over the best text source, with the
paired test; then the mean gain over the data sets that have a graph. A folder with ``mentions_cap.jsonl`` is evaluated
a second time with those mentions instead of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import mean, median
from time import process_time

import anyio
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from adapters.model.sources import SOURCES
from adapters.ports import VectorRecord
from benchmarks.confidence import MIN_CONFIDENCE, measure_confidence
from benchmarks.corpus import indexed_records
from benchmarks.two_collections import in_two_collections
from orchestrator.bootstrap import open_service
from orchestrator.evaluation import judged_runs as figures
from orchestrator.evaluation import measures, runner
from orchestrator.evaluation.comparison import Difference, compare
from orchestrator.evaluation.dataset import Dataset, read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, ByRun
from orchestrator.evaluation.runs import REFERENCE_RUN, RUNS, TEXT_SOURCES, make_request
from orchestrator.evaluation.searched_index import QueryResult
from orchestrator.evaluation.workspace import Workspace
from orchestrator.schema.search import EncoderName, ProfileName
from orchestrator.settings import load

_console = Console(width=180)
_SINGLE = tuple(source.name for source in SOURCES)
_RECALLS = ("R@10", "R@20", "R@100")
_MEASURES = (MAIN_MEASURE, "R@5", *_RECALLS)
_PROFILES: Mapping[ProfileName, str] = {
    "joint": REFERENCE_RUN,
    "rrf": "profile/rrf",
    "weighted_rrf": "profile/weighted_rrf",
}
_OTHERS = (
    "vector+keyword",
    "hybrid/rrf",
    "profile/rrf",
    "profile/weighted_rrf",
    "hybrid/centrality",
    "hybrid/relationship",
    "hybrid/dates",
    "hybrid/static",
    "auto",
)
_TEXT = "+".join(TEXT_SOURCES)
_TOP, _TEXT_DEPTH = 3, 20
_ENCODERS: tuple[EncoderName, ...] = ("model", "static")
_STAGES = ("plan", "gather", "fuse", "boost", "collapse", "hydrate")
_MAX_LOSS, _MAX_WEIGHTED_LOSS = -0.01, -0.02
"""How far the reference run may be below the best single source, and below both text sources together, relatively; and
how far the profile ``weighted_rrf`` may be below the best single source."""


def main() -> None:
    """Evaluate every folder on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    parser.add_argument("--work", type=Path, default=Path("benchmarks/.data/quality"), help="folder of the indexes")
    arguments = parser.parse_args()
    reference = Table(title=f"{REFERENCE_RUN}, default settings", title_justify="left")
    others = Table(title=f"{MAIN_MEASURE} of the other runs", title_justify="left")
    latency = Table(
        title="a search: median time without encoding the query, profiles in turn; mean CPU with it, encoders in turn",
        title_justify="left",
    )
    confidence = Table(title=f"with min_confidence {MIN_CONFIDENCE:g}", title_justify="left")
    datasets = {folder.name: read_dataset(folder) for folder in arguments.folders}
    harm = Table(title=f"{REFERENCE_RUN}: what the graph adds to {_TEXT}", title_justify="left")
    divided = Table(title=f"{REFERENCE_RUN}, the same documents in two collections", title_justify="left")
    recalls = Table(title="recall minus that of the best single source", title_justify="left")
    for table, columns in (
        (reference, ("set", *_MEASURES, "best single", "gain", "p", "best text", "gain", "p", "graph trust")),
        (others, ("set", *_SINGLE, *_OTHERS)),
        (latency, ("set", *(f"{profile}, ms" for profile in _PROFILES), *(f"{each}, CPU ms" for each in _ENCODERS))),
        (confidence, ("set", "unanswerable queries without hits", f"loss of {MAIN_MEASURE}")),
        (harm, ("set", _TEXT, "gain", "p", "only the graph knows, first three", "relevant")),
        (divided, ("set", f"{MAIN_MEASURE} in one", "gain", "p")),
        (recalls, ("set", *(f"{profile} {measure}" for profile in _PROFILES for measure in _RECALLS))),
    ):
        for column in columns:
            table.add_column(column, justify="left" if column == "set" else "right", no_wrap=True)
    gains, worst, worst_weighted = [], 0.0, 0.0
    for folder in arguments.folders:
        for name, variant in _variants(folder):
            with variant as path:
                by_run, trust, (graph_only, right) = _evaluate(path, arguments.work)
                workspace = Workspace.of(load(data_dir=arguments.work), read_dataset(path))
                latency.add_row(name, *(f"{ms:.1f}" for ms in anyio.run(_latencies, workspace)))
                in_two = anyio.run(_in_two_collections, workspace, by_run)
                if len(datasets) > 1:
                    others_only = {other: each for other, each in datasets.items() if other != folder.name}
                    sure = anyio.run(measure_confidence, workspace, others_only)
                    confidence.add_row(name, f"{sure.rejected:.1%}", f"{sure.loss:.2%}")
            values = {run: measures.mean(by_run[run][MAIN_MEASURE]) for run in _SINGLE}
            single = max(_SINGLE, key=lambda run: values[run])
            over_single = _compare(by_run, single)
            over_text = _compare(by_run, figures.best_text_source(values))
            reference.add_row(
                name,
                *(f"{measures.mean(by_run[REFERENCE_RUN][measure]):.4f}" for measure in _MEASURES),
                *_cells(over_single),
                *_cells(over_text),
                f"{trust:.2f}",
            )
            others.add_row(name, *(f"{measures.mean(by_run[run][MAIN_MEASURE]):.4f}" for run in (*_SINGLE, *_OTHERS)))
            divided.add_row(name, *_cells(in_two))
            recalls.add_row(name, *_recall_differences(by_run))
            over_both = _compare(by_run, _TEXT)
            harm.add_row(name, *_cells(over_both), f"{graph_only}", f"{right}")
            worst = min(worst, over_single.relative or 0.0, over_both.relative or 0.0)
            worst_weighted = min(worst_weighted, _compare(by_run, single, _PROFILES["weighted_rrf"]).relative or 0.0)
            if (folder / "edges.jsonl").exists():
                gains.append(over_text.relative or 0.0)
    _console.print(reference)
    _console.print(others)
    _console.print(harm)
    _console.print(divided)
    _console.print(recalls)
    _console.print(confidence)
    _console.print(latency)
    if gains:
        _console.print(f"mean gain over the best text source, {len(gains)} sets with a graph: {mean(gains):+.1%}")
    _console.print(f"largest loss against single sources and {_TEXT}: {worst:+.1%} (allowed: {_MAX_LOSS:+.0%})")
    _console.print(
        f"of weighted_rrf against single sources: {worst_weighted:+.1%} (allowed: {_MAX_WEIGHTED_LOSS:+.0%})"
    )
    raise SystemExit(0 if worst >= _MAX_LOSS and worst_weighted >= _MAX_WEIGHTED_LOSS else 1)


def _graph_only(results: Mapping[str, QueryResult], dataset: Dataset) -> tuple[int, int]:
    """Documents among the first three that no text source has among its first 20, and how many of them are relevant."""
    found = [
        dataset.judgments[query].get(hit.id, 0) > 0
        for query, result in results.items()
        for hit in result.hits[:_TOP]
        if all(hit.ranks.get(source, _TEXT_DEPTH + 1) > _TEXT_DEPTH for source in TEXT_SOURCES)
    ]
    return len(found), sum(found)


def _evaluate(folder: Path, work_folder: Path) -> tuple[ByRun, float, tuple[int, int]]:
    dataset = read_dataset(folder)
    workspace = Workspace.of(load(data_dir=work_folder), dataset)
    with Progress(console=_console, transient=True) as progress:
        task = progress.add_task(f"{dataset.name}: encoding", total=None)
        indexed = anyio.run(workspace.index, open_service, lambda count: progress.advance(task, count))
        store = workspace.results(indexed.build_id)
        task = progress.add_task(f"{dataset.name}: searching", total=len(dataset.queries) * len(RUNS))
        runner.run_all(open_service, workspace, store, 1, lambda count: progress.advance(task, count))
    results = runner.collect(workspace, store)
    by_run = figures.measure_runs(figures.as_runs(results, dataset), dataset)
    trust = workspace.conditions(indexed.documents).graph_trust or 0.0
    return by_run, trust, _graph_only(results[REFERENCE_RUN], dataset)


async def _in_two_collections(workspace: Workspace, by_run: ByRun) -> Difference:
    """The reference run over the same documents in two collections, compared with that over one."""
    records = [
        VectorRecord(
            msgspec.structs.replace(each.record, document=in_two_collections(each.record.document)), each.vectors
        )
        for each in await indexed_records(workspace)
    ]
    dataset = workspace.dataset
    run = {}
    with tempfile.TemporaryDirectory() as folder:
        async with open_service(workspace.settings.changed(data_dir=Path(folder))) as service:
            await service.documents.lines.writer.write(records, ())
            await service.maintenance.optimize(lambda _: None)
            for query, text in dataset.queries.items():
                request = make_request(text, RUNS[REFERENCE_RUN].fields)
                response = await service.search.search(request, service.anonymous, "two-collections")
                run[query] = figures.descending_scores([hit.id for hit in response.hits])
    values = measures.measure_run(dataset.judgments, run)
    return compare("in two", "in one", values[MAIN_MEASURE], by_run[REFERENCE_RUN][MAIN_MEASURE])


async def _latencies(workspace: Workspace) -> list[float]:
    """The median ms of a search by profile, without any cache but that of the query's vector; then the mean CPU ms of a
    search that encodes the query, by encoder.
    """
    times: dict[ProfileName, list[float]] = {profile: [] for profile in _PROFILES}
    cpu: dict[EncoderName, list[float]] = {encoder: [] for encoder in _ENCODERS}
    async with open_service(workspace.settings) as service:
        by_encoder = {
            encoder: service.search.with_settings(service.search.settings.changed(query_encoder=encoder))
            for encoder in _ENCODERS
        }
        for text in workspace.dataset.queries.values():  # first, while no vector is cached
            for encoder, search in by_encoder.items():
                request = make_request(text, {"mode": "hybrid", "limit": 10, "cache": "bypass"})
                start = process_time()
                await search.search(request, service.anonymous, "cpu")
                cpu[encoder].append((process_time() - start) * 1_000)
        for text in workspace.dataset.queries.values():
            await service.search.retrieval.preparation.encoders.encode(text, "model", service.anonymous.scope.tenant)
            for profile, taken in times.items():
                request = make_request(text, {"mode": "hybrid", "limit": 10, "profile": profile, "cache": "bypass"})
                response = await service.search.search(request, service.anonymous, "latency")
                taken.append(sum(response.timings_ms[stage] for stage in _STAGES))
    return [*(median(taken) for taken in times.values()), *(mean(taken) for taken in cpu.values())]


def _recall_differences(by_run: ByRun) -> Iterator[str]:
    for run in _PROFILES.values():
        for measure in _RECALLS:
            best = max(measures.mean(by_run[single][measure]) for single in _SINGLE)
            yield f"{measures.mean(by_run[run][measure]) - best:+.4f}"


def _compare(by_run: ByRun, other: str, run: str = REFERENCE_RUN) -> Difference:
    return compare(run, other, by_run[run][MAIN_MEASURE], by_run[other][MAIN_MEASURE])


def _cells(difference: Difference) -> tuple[str, str, str]:
    relative = "-" if difference.relative is None else f"{difference.relative:+.1%}"
    return f"{difference.against} {difference.baseline:.4f}", relative, f"{difference.p:.4f}"


def _variants(folder: Path) -> Iterator[tuple[str, AbstractContextManager[Path]]]:
    yield folder.name, _unchanged(folder)
    if (folder / "mentions_cap.jsonl").exists():
        yield f"{folder.name}, capitalised", _with_capitalised_mentions(folder)


@contextmanager
def _unchanged(folder: Path) -> Iterator[Path]:
    yield folder


@contextmanager
def _with_capitalised_mentions(folder: Path) -> Iterator[Path]:
    """The same data set with its cheap graph: mentions of capitalised phrases, which have the prefix ``c:``."""
    with tempfile.TemporaryDirectory() as temporary:
        variant = Path(temporary, f"{folder.name}-capitalised")
        variant.mkdir()
        for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv", "edges.jsonl"):
            (variant / name).symlink_to((folder / name).resolve())
        with (folder / "mentions_cap.jsonl").open() as mentions, (variant / "mentions.jsonl").open("w") as file:
            for line in mentions:
                mention = json.loads(line)
                file.write(json.dumps({**mention, "entity": mention["entity"].removeprefix("c:")}) + "\n")
        yield variant


if __name__ == "__main__":
    main()
