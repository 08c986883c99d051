"""The figures of an evaluation on a terminal."""

from __future__ import annotations

from rich.markup import escape

from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import out
from orchestrator.evaluation.comparison import SIGNIFICANCE
from orchestrator.evaluation.judged_runs import Evaluation
from orchestrator.evaluation.runs import RUNS
from orchestrator.evaluation.sentences import conclusion, remarks


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the conclusion, and the figures as tables."""
    out.print(f"[bold]{escape(conclusion(evaluation))}[/bold]", highlight=False)
    for remark in remarks(evaluation):
        out.print(f"[yellow]{escape(remark)}[/yellow]", highlight=False)
    conditions = evaluation.conditions
    title = f"[bold]{escape(evaluation.dataset)}[/bold]: {evaluation.queries} queries, {conditions.documents} documents"
    columns = [Column(name) for name in ("run", *next(iter(evaluation.runs.values())), "sources")]
    rows = []
    for run, values in evaluation.runs.items():
        sources = f"{evaluation.sources_per_query[run]:.2f}" if run in evaluation.sources_per_query else "-"
        description = RUNS[run].description if run in RUNS else "a run file"
        rows.append((run, *(f"{value:.4f}" for value in values.values()), sources, description))
    print_table(out, [*columns, Column("what it is", is_text=True)], rows, title)
    differences = []
    for each in evaluation.comparisons:
        relative = "" if each.relative is None else f" ({each.relative:+.1%})"
        differences.append(
            (
                f"{each.run} - {each.against}",
                f"{each.difference:+.4f}{relative}",
                f"{each.interval[0]:+.4f} {each.interval[1]:+.4f}",
                f"{each.corrected_p:.4f}{'*' if each.corrected_p < SIGNIFICANCE else ' '}",
                str(each.wins),
                str(each.losses),
            )
        )
    names = ("run - against", "difference", "95 % interval", "corrected p", "wins", "losses")
    print_table(out, [Column(name) for name in names], differences, "differences in nDCG@10, paired")
    out.print(
        f"[dim]* p < {SIGNIFICANCE:g} in a two-sided paired randomisation test, corrected for the number of "
        "comparisons by Holm[/dim]"
    )
