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

from orchestrator.contract import SOURCES
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.evaluate import OURS, ByRun, Evaluation, best_text
from orchestrator.evaluation.measures import MAIN, MEASURES
from orchestrator.evaluation.work import Answer

_WORST = 10
_INK, _GAIN, _LOSS = "#222222", "#2a7f62", "#b3423a"


class Place(Struct, frozen=True):
    """A relevant document of a query that lost: where our run and each source had it; ``None`` is nowhere."""

    document: str
    relevance: int
    ours: int | None
    sources: dict[str, int | None]


class Loss(Struct, frozen=True):
    """A query that the baseline answered better, with the documents that somebody looked for."""

    query: str
    text: str
    ours: float
    theirs: float
    places: list[Place]
    top: list[str]


def write(
    path: Path,
    evaluation: Evaluation,
    dataset: Dataset,
    by_run: ByRun,
    answers: Mapping[str, Mapping[str, Answer]],
) -> None:
    """Write the report of an evaluation to ``path``."""
    baseline = best_text(by_run)
    ours, theirs = by_run[OURS][MAIN], by_run[baseline][MAIN]
    differences = {query: ours[query] - theirs[query] for query in dataset.queries}
    template = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: files(__package__).joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    ).get_template("report.html.j2")
    page = template.render(
        evaluation=evaluation,
        measures=list(MEASURES),
        main=MAIN,
        ours=OURS,
        baseline=baseline,
        sources=SOURCES,
        runs_plot=_runs_plot(evaluation),
        queries_plot=_queries_plot(sorted(differences.values(), reverse=True), baseline),
        worst=_worst(dataset, differences, by_run, answers, baseline),
    )
    path.write_text(page, "utf-8")


def _worst(
    dataset: Dataset,
    differences: Mapping[str, float],
    by_run: ByRun,
    answers: Mapping[str, Mapping[str, Answer]],
    baseline: str,
) -> list[Loss]:
    """The queries that lost most against the baseline, the worst first."""
    lost = sorted((difference, query) for query, difference in differences.items() if difference < 0)[:_WORST]
    return [
        Loss(
            query=query,
            text=dataset.queries[query],
            ours=by_run[OURS][MAIN][query],
            theirs=by_run[baseline][MAIN][query],
            places=[
                Place(
                    document,
                    relevance,
                    _rank(answers[OURS][query], document),
                    {source: _rank(answers[source][query], document) for source in SOURCES},
                )
                for document, relevance in dataset.judgments[query].items()
                if relevance > 0
            ],
            top=[_provenance(hit.id, hit.ranks) for hit in answers[OURS][query].hits[:5]],
        )
        for _, query in lost
    ]


def _rank(answer: Answer, document: str) -> int | None:
    return next((place for place, hit in enumerate(answer.hits, start=1) if hit.id == document), None)


def _provenance(document: str, ranks: Mapping[str, int]) -> str:
    found = ", ".join(f"{source} {ranks[source]}" for source in SOURCES if source in ranks)
    return f"{document} ({found})"


def _runs_plot(evaluation: Evaluation) -> Markup:
    """Each run's mean with its interval."""
    names = list(evaluation.runs)
    figure = Figure(figsize=(8, 0.4 * len(names) + 0.8), layout="constrained")
    axes = figure.subplots()
    for place, name in enumerate(names):
        low, high = evaluation.intervals[name][MAIN]
        value = evaluation.runs[name][MAIN]
        axes.plot([low, high], [place, place], color=_INK, linewidth=1)
        axes.plot([value], [place], "o", color=_GAIN if name == OURS else _INK)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(f"{MAIN}, mean and 95 % interval")
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
    axes.set_ylabel(f"{MAIN} over {baseline}", parse_math=False)
    return _svg(figure)


def _svg(figure: Figure) -> Markup:
    drawn = io.StringIO()
    # No date and no random ids: the same evaluation makes the same report.
    with matplotlib.rc_context({"svg.hashsalt": "trivium"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return Markup(drawn.getvalue()[drawn.getvalue().index("<svg") :])  # noqa: S704  # drawn here, names escaped by it
