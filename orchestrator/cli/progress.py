"""Progress on a terminal; nothing if the output is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(console: Console, work: str, items: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar; call the function with the number of items that were done since the last call."""
    columns = (
        TextColumn(work),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{items},"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(work, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def progress_steps(console: Console, work: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the current step; call the function with the name of each step as it begins."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(work, total=None)
        yield lambda step: progress.update(task, description=f"{work}: {step}")
