"""``trivium shadow``: how the rankings and times of two profiles differ on live queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import out, reported_errors
from orchestrator.evaluation.judgments import BadDataset
from orchestrator.evaluation.shadow_report import Percentiles, days_of

_STANDARD_INPUT = Path("-")
_FIGURES = ("searches", "failed", "overlap", "rank correlation", "same first", "live p50/p95 ms", "shadow p50/p95 ms")


def shadow(
    log: Annotated[Path, typer.Argument(help="the log of a service that has TRIVIUM_SHADOW; - is standard input")],
) -> None:
    """Report the shadow searches of a log, by day: how two profiles differ on live queries."""
    with reported_errors(usage_errors=(BadDataset,)):
        if log == _STANDARD_INPUT:
            days = days_of(sys.stdin.buffer)
        else:
            with log.open("rb") as lines:
                days = days_of(lines)
        if not days:
            raise BadDataset(
                f"{log} has no shadow searches: a service logs them with TRIVIUM_SHADOW, such as rrf:0.05, and "
                "TRIVIUM_LOG_LEVEL info"
            )
        rows = [
            (
                each.day,
                f"{each.live} and {each.shadow}",
                str(each.compared),
                str(each.failed),
                _number(each.overlap),
                _number(each.rank_correlation),
                _number(each.same_first),
                _times(each.live_ms),
                _times(each.shadow_ms),
            )
            for each in days
        ]
        print_table(out, [Column("day"), Column("profiles"), *(Column(name) for name in _FIGURES)], rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _times(value: Percentiles | None) -> str:
    return "-" if value is None else f"{value.p50:.1f} / {value.p95:.1f}"
