"""From answers to figures: every run by every measure, and what the differences are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from orchestrator.evaluation import measures, trec
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.measures import MAIN, MEASURES, Difference
from orchestrator.evaluation.runs import TEXT
from orchestrator.evaluation.trec import Run
from orchestrator.evaluation.work import Answer

OURS = "hybrid"
"""The run that all others are compared with."""

ByRun = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By run, by measure, by query."""


class Evaluation(Struct, frozen=True):
    """Everything that was measured; ``runs`` and ``intervals`` (at 95 %) by run, by measure.

    ``asked`` is how many sources a query of each run asked, on average. ``guard`` is what the graph counted.
    """

    dataset: str
    documents: int
    queries: int
    guard: float
    runs: dict[str, dict[str, float]]
    intervals: dict[str, dict[str, tuple[float, float]]]
    asked: dict[str, float]
    comparisons: list[Difference]


def as_runs(answers: Mapping[str, Mapping[str, Answer]], dataset: Dataset) -> dict[str, Run]:
    """Answers as TREC has them, in the order of the queries.

    A score is the number of hits from there on: measures sort by it again, in 32 bits and by their own rule for ties,
    and would judge another order than the engine's where its scores are equal, or nearly.
    """
    return {
        name: {id_: places([hit.id for hit in given[id_].hits]) for id_ in dataset.queries}
        for name, given in answers.items()
    }


def places(ids: Sequence[str]) -> list[tuple[str, float]]:
    """Documents in their order, as a run: scores fall by 1 to 1."""
    return [(id_, float(len(ids) - place)) for place, id_ in enumerate(ids)]


def judged(runs: Mapping[str, Run], dataset: Dataset) -> ByRun:
    """Each run by each measure, query by query."""
    return {name: measures.judge(dataset.judgments, run) for name, run in runs.items()}


def best_text(by_run: ByRun) -> str:
    """The better of the sources that see nothing but the text."""
    return max(TEXT, key=lambda name: (measures.mean(by_run[name][MAIN]), name))


def evaluate(
    dataset: Dataset,
    by_run: ByRun,
    asked: Mapping[str, float],
    documents: int,
    guard: float,
    against: str | None = None,
) -> Evaluation:
    """The figures, and our run against each of the others; or each run against the one that is named."""
    pairs = [(name, against) for name in by_run] if against else [(OURS, name) for name in by_run]
    return Evaluation(
        dataset=dataset.name,
        documents=documents,
        queries=len(dataset.queries),
        guard=guard,
        runs={name: {each: measures.mean(values[each]) for each in MEASURES} for name, values in by_run.items()},
        intervals={
            name: {each: measures.interval(values[each]) for each in MEASURES} for name, values in by_run.items()
        },
        asked=dict(asked),
        comparisons=[
            measures.compare(run, other, by_run[run][MAIN], by_run[other][MAIN]) for run, other in pairs if run != other
        ],
    )


def asked(answers: Mapping[str, Mapping[str, Answer]]) -> dict[str, float]:
    """By run, how many sources a query asked, on average."""
    return {name: sum(len(answer.sources) for answer in given.values()) / len(given) for name, given in answers.items()}


def export(folder: Path, runs: Mapping[str, Run], dataset: Dataset) -> None:
    """Each run as a file of its own, and the judgments, as ``trec_eval`` and ``ir_measures`` read them."""
    folder.mkdir(parents=True, exist_ok=True)
    trec.write_judgments(folder / "qrels.trec", dataset.judgments)
    for name, run in runs.items():
        tag = "".join(letter if letter.isalnum() or letter in "+=-" else "_" for letter in name)
        trec.write_run(folder / f"{tag}.trec", run, tag)
