"""Computes every measure of every run, and the differences between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from orchestrator.evaluation import trec
from orchestrator.evaluation.comparison import Difference, compare, interval
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, MEASURES, ByRun, mean, measure_run
from orchestrator.evaluation.runs import REFERENCE_RUN, TEXT_SOURCES
from orchestrator.evaluation.trec import Run
from orchestrator.evaluation.workspace import QueryResult


class Evaluation(Struct, frozen=True):
    """Everything that was measured. ``runs`` and ``intervals`` (95 %) are by run and measure.

    ``sources_per_query`` is a mean for each run. ``graph_trust`` is the factor on the weight of the graph.
    """

    dataset: str
    documents: int
    queries: int
    graph_trust: float
    runs: dict[str, dict[str, float]]
    intervals: dict[str, dict[str, tuple[float, float]]]
    sources_per_query: dict[str, float]
    comparisons: list[Difference]


def as_runs(results: Mapping[str, Mapping[str, QueryResult]], dataset: Dataset) -> dict[str, Run]:
    """Results as TREC runs, in the order of the queries.

    The scores are the reversed ranks: measures sort by score in 32 bits with their own rule for ties, which changes the
    order of equal or nearly equal scores.
    """
    return {
        name: {id_: descending_scores([hit.id for hit in by_query[id_].hits]) for id_ in dataset.queries}
        for name, by_query in results.items()
    }


def descending_scores(ids: Sequence[str]) -> list[tuple[str, float]]:
    """Documents in their order as a run: each score is 1 less than the one before it, and the last is 1."""
    return [(id_, float(len(ids) - index)) for index, id_ in enumerate(ids)]


def measure_runs(runs: Mapping[str, Run], dataset: Dataset) -> ByRun:
    """Every measure of every run, by query."""
    return {name: measure_run(dataset.judgments, run) for name, run in runs.items()}


def best_text_source(by_run: ByRun) -> str:
    """The best of the text sources."""
    return max(TEXT_SOURCES, key=lambda name: (mean(by_run[name][MAIN_MEASURE]), name))


def evaluate(
    dataset: Dataset,
    by_run: ByRun,
    results: Mapping[str, Mapping[str, QueryResult]],
    documents: int,
    graph_trust: float,
    against: str | None = None,
) -> Evaluation:
    """The figures, and comparisons of the reference run with each other run, or of each run with ``against``."""
    pairs = [(name, against) for name in by_run] if against else [(REFERENCE_RUN, name) for name in by_run]
    return Evaluation(
        dataset=dataset.name,
        documents=documents,
        queries=len(dataset.queries),
        graph_trust=graph_trust,
        runs={name: {each: mean(values[each]) for each in MEASURES} for name, values in by_run.items()},
        intervals={name: {each: interval(values[each]) for each in MEASURES} for name, values in by_run.items()},
        sources_per_query=_sources_per_query(results),
        comparisons=[
            compare(run, other, by_run[run][MAIN_MEASURE], by_run[other][MAIN_MEASURE])
            for run, other in pairs
            if run != other
        ],
    )


def export(folder: Path, runs: Mapping[str, Run], dataset: Dataset) -> None:
    """Write each run, and the judgments, to files that ``trec_eval`` and ``ir_measures`` read."""
    folder.mkdir(parents=True, exist_ok=True)
    trec.write_judgments(folder / "qrels.trec", dataset.judgments)
    for name, run in runs.items():
        tag = "".join(letter if letter.isalnum() or letter in "+=-" else "_" for letter in name)
        trec.write_run(folder / f"{tag}.trec", run, tag)


def _sources_per_query(results: Mapping[str, Mapping[str, QueryResult]]) -> dict[str, float]:
    return {
        name: sum(len(result.sources) for result in by_query.values()) / len(by_query)
        for name, by_query in results.items()
    }
