"""Computes every measure of every run, and the differences between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from orchestrator.evaluation import trec
from orchestrator.evaluation.comparison import Difference, compare, corrected, interval
from orchestrator.evaluation.conditions import Conditions
from orchestrator.evaluation.judgments import JudgedQueries, first_of
from orchestrator.evaluation.measures import MAIN_MEASURE, MEASURES, ByRun, mean, measure_run
from orchestrator.evaluation.runs import REFERENCE_RUN, TEXT_SOURCES
from orchestrator.evaluation.searched_index import RankedHit, Results
from orchestrator.evaluation.trec import Run


class Evaluation(Struct, frozen=True):
    """Everything that was measured. ``runs`` and ``intervals`` (95 %) are by run and measure.

    ``against`` is the run that every other one is compared with; without one the reference run is compared with each.
    ``sources_per_query`` is a mean for each run. ``unjudged`` are the ids of queries without judgments, which were not
    searched; ``without_relevant`` those of queries without a relevant document, and ``unknown_documents`` the ids in
    judgments that no document has. Both lower every figure.
    """

    dataset: str
    queries: int
    conditions: Conditions
    against: str | None
    runs: dict[str, dict[str, float]]
    intervals: dict[str, dict[str, tuple[float, float]]]
    sources_per_query: dict[str, float]
    comparisons: list[Difference]
    unjudged: tuple[str, ...]
    without_relevant: tuple[str, ...]
    unknown_documents: tuple[str, ...]

    @property
    def main_values(self) -> dict[str, float]:
        """The main measure of each run."""
        return {name: values[MAIN_MEASURE] for name, values in self.runs.items()}


def as_runs(results: Results, judged: JudgedQueries) -> dict[str, Run]:
    """Results as TREC runs, in the order of the queries.

    The scores are the reversed ranks: measures sort by score in 32 bits with their own rule for ties, which changes the
    order of equal or nearly equal scores.
    """
    return {
        name: {id_: descending_scores(judged_ids(by_query[id_].hits, judged.judgments[id_])) for id_ in judged.queries}
        for name, by_query in results.items()
    }


def judged_ids(hits: Sequence[RankedHit], relevance: Mapping[str, int]) -> list[str]:
    """The ids of hits as the judgments of the query name them: by the chunk, or by the document that it belongs to. The
    first hit of each counts.
    """
    return list(dict.fromkeys(_judged_id(hit, relevance) for hit in hits))


def _judged_id(hit: RankedHit, relevance: Mapping[str, int]) -> str:
    if hit.parent is not None and hit.parent in relevance and hit.id not in relevance:
        return hit.parent
    return hit.id


def descending_scores(ids: Sequence[str]) -> list[tuple[str, float]]:
    """Documents in their order as a run: each score is 1 less than the one before it, and the last is 1."""
    return [(id_, float(len(ids) - index)) for index, id_ in enumerate(ids)]


def measure_runs(runs: Mapping[str, Run], judged: JudgedQueries) -> ByRun:
    """Every measure of every run, by query."""
    return {name: measure_run(judged.judgments, run) for name, run in runs.items()}


def coverage_problem(run: Run, judged: JudgedQueries) -> str:
    """What a run lacks of the judged queries, so that its figures are lower; empty if it has them."""
    problems = []
    if lacking := [id_ for id_ in judged.queries if not run.get(id_)]:
        problems.append(f"{len(lacking)} of {len(judged.queries)} judged queries have no document in it")
    if unknown := [id_ for id_ in run if id_ not in judged.judgments]:
        problems.append(f"{len(unknown)} of its queries are not judged ({first_of(unknown)})")
    documents = {document for scores in run.values() for document, _ in scores}
    if documents and judged.judged_documents.isdisjoint(documents):
        problems.append("none of its documents is judged")
    return "; ".join(problems)


def best_text_source(values: Mapping[str, float]) -> str:
    """The best of the text sources.

    :param values: the main measure of each run.
    """
    return max(TEXT_SOURCES, key=lambda name: (values[name], name))


def evaluate(
    judged: JudgedQueries,
    by_run: ByRun,
    results: Results,
    conditions: Conditions,
    titles: Mapping[str, str],
    against: str | None = None,
) -> Evaluation:
    """The figures, and comparisons of the reference run with each other run, or of each run with ``against``.

    :param titles: of every judged document that exists, by id.
    """
    pairs = [(name, against) for name in by_run] if against else [(REFERENCE_RUN, name) for name in by_run]
    return Evaluation(
        dataset=judged.name,
        queries=len(judged.queries),
        conditions=conditions,
        against=against,
        runs={name: {each: mean(values[each]) for each in MEASURES} for name, values in by_run.items()},
        intervals={name: {each: interval(values[each]) for each in MEASURES} for name, values in by_run.items()},
        sources_per_query=_sources_per_query(results),
        comparisons=corrected(
            [
                compare(run, other, by_run[run][MAIN_MEASURE], by_run[other][MAIN_MEASURE])
                for run, other in pairs
                if run != other
            ]
        ),
        unjudged=judged.unjudged,
        without_relevant=tuple(judged.without_relevant),
        unknown_documents=tuple(sorted(judged.judged_documents - titles.keys())),
    )


def export(folder: Path, runs: Mapping[str, Run], judged: JudgedQueries) -> None:
    """Write each run, and the judgments, to files that ``trec_eval`` and ``ir_measures`` read."""
    folder.mkdir(parents=True, exist_ok=True)
    trec.write_judgments(folder / "qrels.trec", judged.judgments)
    for name, run in runs.items():
        tag = "".join(letter if letter.isalnum() or letter in "+=-" else "_" for letter in name)
        trec.write_run(folder / f"{tag}.trec", run, tag)


def _sources_per_query(results: Results) -> dict[str, float]:
    return {
        name: sum(len(result.sources) for result in by_query.values()) / len(by_query)
        for name, by_query in results.items()
    }
