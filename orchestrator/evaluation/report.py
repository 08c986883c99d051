"""The report: one HTML file that needs no network, with its plots inside."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import jinja2
import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure
from msgspec import Struct

from adapters.model.sources import SOURCES
from orchestrator.evaluation.comparison import SIGNIFICANCE
from orchestrator.evaluation.judged_runs import Evaluation, best_text_source
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.measures import MAIN_MEASURE, MEASURES, ByRun
from orchestrator.evaluation.runs import REFERENCE_RUN, RUNS, SHOWN_HITS
from orchestrator.evaluation.searched_index import QueryResult, RankedHit, Results
from orchestrator.evaluation.sentences import conclusion, remarks

_MAX_LOSSES = 10
_NAMES = tuple(source.name for source in SOURCES)
_INK, _GAIN, _LOSS = "#222222", "#2a7f62", "#b3423a"


class RelevantDocument(Struct, frozen=True):
    """A relevant document of a query: its rank in the reference run and each source; ``None``: missing."""

    document: str
    title: str
    relevance: int
    reference: int | None
    sources: dict[str, int | None]


class Loss(Struct, frozen=True):
    """A query with a better result in the baseline run, and its relevant documents."""

    query: str
    text: str
    reference: float
    baseline: float
    relevant: list[RelevantDocument]
    top: list[str]


def write_report(
    path: Path,
    evaluation: Evaluation,
    judged: JudgedQueries,
    by_run: ByRun,
    results: Results,
    titles: Mapping[str, str],
) -> None:
    """Write the report of an evaluation to ``path``.

    :param titles: by id, of the judged documents and of the first hits of the reference run.
    """
    baseline = best_text_source(evaluation.main_values)
    reference_values, baseline_values = by_run[REFERENCE_RUN][MAIN_MEASURE], by_run[baseline][MAIN_MEASURE]
    differences = {query: reference_values[query] - baseline_values[query] for query in judged.queries}
    template = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: files(__package__).joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    ).get_template("report.html.j2")
    page = template.render(
        evaluation=evaluation,
        conclusion=conclusion(evaluation),
        remarks=list(remarks(evaluation)),
        descriptions={name: plan.description for name, plan in RUNS.items()},
        measures=list(MEASURES),
        main=MAIN_MEASURE,
        reference=REFERENCE_RUN,
        baseline=baseline,
        sources=_NAMES,
        differences_plot=_differences_plot(evaluation),
        queries_plot=_queries_plot(sorted(differences.values(), reverse=True), baseline),
        losses=_worst_losses(judged, differences, by_run, results, baseline, titles),
    )
    path.write_text(page, "utf-8")


def _worst_losses(
    judged: JudgedQueries,
    differences: Mapping[str, float],
    by_run: ByRun,
    results: Results,
    baseline: str,
    titles: Mapping[str, str],
) -> list[Loss]:
    """The queries that lost most against the baseline, the worst first."""
    lost = sorted((difference, query) for query, difference in differences.items() if difference < 0)[:_MAX_LOSSES]
    return [
        Loss(
            query=query,
            text=judged.queries[query],
            reference=by_run[REFERENCE_RUN][MAIN_MEASURE][query],
            baseline=by_run[baseline][MAIN_MEASURE][query],
            relevant=[
                RelevantDocument(
                    document,
                    titles.get(document, "no such document"),
                    relevance,
                    _rank(results[REFERENCE_RUN][query], document),
                    {source: _rank(results[source][query], document) for source in _NAMES},
                )
                for document, relevance in judged.judgments[query].items()
                if relevance > 0
            ],
            top=[_provenance(hit, titles) for hit in results[REFERENCE_RUN][query].hits[:SHOWN_HITS]],
        )
        for _, query in lost
    ]


def _rank(result: QueryResult, document: str) -> int | None:
    return next((rank for rank, hit in enumerate(result.hits, start=1) if document in (hit.id, hit.parent)), None)


def _provenance(hit: RankedHit, titles: Mapping[str, str]) -> str:
    names = (*_NAMES, *(name for name in hit.ranks if name not in _NAMES))
    by_source = ", ".join(f"{source} {hit.ranks[source]}" for source in names if source in hit.ranks)
    title = titles.get(hit.id)
    return f"{f'{title} [{hit.id}]' if title else hit.id} ({by_source})"


def _differences_plot(evaluation: Evaluation) -> Markup:
    """Each paired difference with its interval. The intervals of the means alone would hide them: most of their width
    is that queries differ, which concerns both runs.
    """
    figure = Figure(figsize=(8, 0.3 * len(evaluation.comparisons) + 1), layout="constrained")
    axes = figure.subplots()
    for row, each in enumerate(evaluation.comparisons):
        colour = _INK if each.corrected_p >= SIGNIFICANCE else _GAIN if each.difference > 0 else _LOSS
        axes.plot(each.interval, [row, row], color=colour, linewidth=1)
        axes.plot([each.difference], [row], "o", color=colour)
    names = [f"{each.run} - {each.against}" for each in evaluation.comparisons]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set_xlabel(f"difference in {MAIN_MEASURE}, mean and 95 % interval; coloured: significant")
    axes.grid(axis="x", alpha=0.3)
    return _svg(figure)


def _queries_plot(differences: Sequence[float], baseline: str) -> Markup:
    """Each query's gain or loss, sorted."""
    figure = Figure(figsize=(8, 2.6), layout="constrained")
    axes = figure.subplots()
    colours = [_GAIN if each > 0 else _LOSS for each in differences]
    axes.bar(range(len(differences)), differences, color=colours, width=1.0)
    axes.axhline(0, color=_INK, linewidth=0.8)
    axes.set_xlabel("queries, the best gain first")
    axes.set_ylabel(f"{MAIN_MEASURE} over {baseline}", parse_math=False)
    axes.margins(x=0.01)
    axes.grid(axis="y", alpha=0.3)
    return _svg(figure)


def _svg(figure: Figure) -> Markup:
    drawn = io.StringIO()
    # No date and no random ids: the same evaluation gives the same report.
    with matplotlib.rc_context({"svg.hashsalt": "trivium"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return Markup(drawn.getvalue()[drawn.getvalue().index("<svg") :])  # noqa: S704  # drawn here, names escaped by it
